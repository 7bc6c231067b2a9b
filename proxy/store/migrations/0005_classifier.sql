CREATE TABLE classifier_spending ( -- what was spent on proposals of a model, by day (UTC)
  day TEXT PRIMARY KEY,
  requests INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  usd REAL NOT NULL
) WITHOUT ROWID;

-- a pin that a model proposed: the rule that it names, and where its words stand
ALTER TABLE pin_edits ADD COLUMN rule TEXT NOT NULL DEFAULT 'by hand';
ALTER TABLE pin_edits ADD COLUMN turn TEXT NOT NULL DEFAULT '';   -- turn key, 32 hex digits; '' for words of nobody's turn
ALTER TABLE pin_edits ADD COLUMN start INTEGER NOT NULL DEFAULT 0;  -- characters of the turn
ALTER TABLE pin_edits ADD COLUMN stop INTEGER NOT NULL DEFAULT 0;
