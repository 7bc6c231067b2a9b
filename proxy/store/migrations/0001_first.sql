-- Texts are masked: a secret value stands as [secret:KIND:HASH], the value itself lies encrypted in `secrets`.
-- Records are JSON text. Times are ISO 8601 in UTC. Receipt ids are ULIDs, so they sort by time.

CREATE TABLE messages (          -- the log and the archive in one: each message once, by content
  tenant TEXT NOT NULL,
  digest TEXT NOT NULL,          -- blake2b, 32 hex digits, over the bytes that the client sent
  role TEXT NOT NULL,
  body TEXT NOT NULL,            -- the client's JSON, masked
  tokens INTEGER NOT NULL,       -- 0 = not counted
  at TEXT NOT NULL,
  PRIMARY KEY (tenant, digest)
);

CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  namespace TEXT NOT NULL,
  project TEXT NOT NULL,
  client TEXT NOT NULL,
  model TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  requests INTEGER NOT NULL
);

CREATE TABLE branches (
  id TEXT PRIMARY KEY,
  session TEXT NOT NULL,
  tenant TEXT NOT NULL,
  namespace TEXT NOT NULL,
  kind TEXT NOT NULL,
  parent TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  length INTEGER NOT NULL,       -- messages in the newest path
  record TEXT NOT NULL,          -- what it is
  state TEXT NOT NULL,           -- where it stands; '' = nothing was asked on it yet
  updated_at TEXT NOT NULL
);
CREATE INDEX branches_of_session ON branches (session);

CREATE TABLE paths (             -- append-only: the path as of a receipt is, for each pos, the row with the newest since up to it
  branch TEXT NOT NULL,
  pos INTEGER NOT NULL,
  since TEXT NOT NULL,           -- id of the receipt whose request first had this message here
  digest TEXT NOT NULL,
  PRIMARY KEY (branch, pos, since)
) WITHOUT ROWID;

CREATE TABLE marks (
  branch TEXT NOT NULL,
  kind TEXT NOT NULL,
  hash BLOB NOT NULL,
  other BLOB NOT NULL,
  PRIMARY KEY (branch, kind, hash)
) WITHOUT ROWID;

CREATE TABLE hints (             -- hashes under which a branch may be found again
  scope BLOB NOT NULL,           -- 8 bytes over tenant and namespace
  hash BLOB NOT NULL,
  branch TEXT NOT NULL,
  PRIMARY KEY (scope, hash, branch)
) WITHOUT ROWID;

CREATE TABLE emissions (         -- what the model answered, by the hashes of its lines
  id TEXT PRIMARY KEY,
  record TEXT NOT NULL
);

CREATE TABLE emission_branches ( -- whose answer it can be: one branch, or all candidates of a tie
  branch TEXT NOT NULL,
  emission TEXT NOT NULL,
  PRIMARY KEY (branch, emission)
) WITHOUT ROWID;

CREATE TABLE insertions (
  id TEXT NOT NULL,
  branch TEXT NOT NULL,
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  record TEXT NOT NULL,
  UNIQUE (branch, id)
);

CREATE TABLE receipts (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  at TEXT NOT NULL,
  tenant TEXT NOT NULL,
  session TEXT NOT NULL,
  branch TEXT NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX receipts_of_session ON receipts (session, seq);
CREATE INDEX receipts_of_branch ON receipts (branch, seq);

CREATE TABLE answers (           -- what the model replied, as it was read beside the stream
  receipt TEXT PRIMARY KEY,
  branch TEXT NOT NULL,
  tenant TEXT NOT NULL,
  record TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX answers_of_branch ON answers (branch);

CREATE TABLE tool_calls (
  receipt TEXT NOT NULL,
  session TEXT NOT NULL,
  branch TEXT NOT NULL,
  call_id TEXT NOT NULL,
  name TEXT NOT NULL,
  arguments TEXT NOT NULL,
  outcome TEXT NOT NULL,
  origin TEXT NOT NULL
);
CREATE INDEX tool_calls_of_session ON tool_calls (session);

CREATE TABLE facts (             -- the newest state of each fact; one for each pin of a session
  id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  project TEXT NOT NULL,
  session TEXT NOT NULL,
  branch TEXT NOT NULL,
  pin TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  scope TEXT NOT NULL,
  record TEXT NOT NULL,
  UNIQUE (session, pin)
);
CREATE INDEX facts_of_project ON facts (project);

CREATE TABLE fact_events (       -- append-only: every state that a fact ever had
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  fact TEXT NOT NULL,
  at TEXT NOT NULL,
  what TEXT NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX fact_events_of_fact ON fact_events (fact);

CREATE TABLE unlisted (          -- events that aren't yet in the JSONL view
  event INTEGER PRIMARY KEY,
  at TEXT NOT NULL
);

CREATE VIRTUAL TABLE facts_text USING fts5 (text, fact UNINDEXED);

CREATE TABLE pin_edits (         -- what people change by hand; applied with the session's next request
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  session TEXT NOT NULL,
  action TEXT NOT NULL CHECK (action IN ('add', 'close', 'retract')),
  pin TEXT NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  at TEXT NOT NULL
);
CREATE INDEX pin_edits_of_session ON pin_edits (session, seq);

CREATE TABLE secrets (
  tenant TEXT NOT NULL,
  token TEXT NOT NULL,
  nonce BLOB NOT NULL,
  sealed BLOB NOT NULL,
  PRIMARY KEY (tenant, token)
) WITHOUT ROWID;

CREATE TABLE learnt (
  upstream TEXT NOT NULL,
  model TEXT NOT NULL,
  ratio REAL NOT NULL,           -- reported tokens per estimated token
  samples INTEGER NOT NULL,
  window INTEGER NOT NULL,       -- tokens, 0 = unknown
  window_until TEXT NOT NULL,
  PRIMARY KEY (upstream, model)
);

CREATE TABLE quarantine (        -- plans whose body an upstream refused
  branch TEXT NOT NULL,
  plan TEXT NOT NULL,
  at TEXT NOT NULL,
  PRIMARY KEY (branch, plan)
);
