ALTER TABLE facts ADD COLUMN namespace TEXT NOT NULL DEFAULT '';  -- name under which the words were said; '*' = by hand
ALTER TABLE facts ADD COLUMN words INTEGER NOT NULL DEFAULT 0;    -- rowid in facts_text

DELETE FROM facts_text;
UPDATE facts SET words = rowid;
INSERT INTO facts_text (rowid, text, fact) SELECT rowid, json_extract(record, '$.text'), id FROM facts;

CREATE TABLE forgotten (         -- what a person or retention took away; ids only
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,              -- of a session or a branch
  gone INTEGER NOT NULL,         -- 1: nothing of it is written any more; 0: it changed, memory has to be read anew
  at TEXT NOT NULL
);
CREATE INDEX forgotten_ids ON forgotten (id);
