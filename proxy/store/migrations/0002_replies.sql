CREATE TABLE replies (           -- what an upstream keeps under an id: the path of a request and the items of its answer
  scope BLOB NOT NULL,           -- 8 bytes over tenant and namespace
  id TEXT NOT NULL,              -- the upstream's own
  branch TEXT NOT NULL,
  receipt TEXT NOT NULL,         -- the path is that of the branch as of this receipt
  length INTEGER NOT NULL,       -- messages of it
  insertions TEXT NOT NULL,      -- JSON list of ids: the insertions that stood in what the upstream got
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX replies_of_branch ON replies (branch);

CREATE TABLE reply_items (
  tenant TEXT NOT NULL,
  branch TEXT NOT NULL,
  receipt TEXT NOT NULL,
  pos INTEGER NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (receipt, pos)
) WITHOUT ROWID;
CREATE INDEX reply_items_of_branch ON reply_items (branch);
