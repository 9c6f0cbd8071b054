"""From a plan to records: requests, responses, scores, and code that is run. No pytest in it."""
