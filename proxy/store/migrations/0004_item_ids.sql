ALTER TABLE reply_items ADD COLUMN item TEXT NOT NULL DEFAULT '';  -- the upstream's own id of the item, '' without one
CREATE INDEX reply_items_by_item ON reply_items (tenant, item) WHERE item <> '';
