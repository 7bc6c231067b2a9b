CREATE TABLE frames (            -- what stood around the messages of a body that was sent, so that it can be built again
  session TEXT NOT NULL,
  digest TEXT NOT NULL,          -- blake2b, 32 hex digits, over the text
  tenant TEXT NOT NULL,
  body TEXT NOT NULL,            -- the body's JSON with an empty list of messages, masked; "[frame:DIGEST]" stands for a large value
  PRIMARY KEY (session, digest)
);
CREATE INDEX tool_calls_of_receipt ON tool_calls (receipt);
