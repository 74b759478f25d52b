"""The filter language of queries: text, JSON form, typed tree, compiled conditions."""
