CREATE (:Batch {run: $run, revision: $revision, relationships: $relationships})
