"""From a plan to records: requests, responses, scores and executed programs, without pytest."""
