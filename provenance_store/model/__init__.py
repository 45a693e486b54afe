"""The vocabulary: record ids, PROV-JSON documents, messages, manifest, account. Imports nothing of ours but errors."""
