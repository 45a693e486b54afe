// A lake graph of schema 1, in the form that its release left.
CREATE (:LakeGraph {id: 'lake', schema: 1, replacements: 1});
CREATE (:Run {id: 'whole', dic: 'd', verdict: 'complete', generation: 1, revision: 2, revisions: 2, digest: 'x',
  edges: 3, unclean: true, merged_at: datetime('2026-01-02T00:00:00Z'), marks: [], missing: '{}'});
CREATE (:Run {id: 'half', staged_generation: 0, staged_revision: 1, staged_digest: 'y', revisions: 1});
CREATE (:Run {id: 'declared', dic: 'j', verdict: 'unknown', generation: 0, revision: 1, revisions: 1, digest: 'z',
  edges: 1, unclean: false, merged_at: datetime('2026-01-02T00:00:00Z'), marks: ['declared'], missing: '{}'});
UNWIND [['lake:out/1#a', 'out'], ['lake:in/1#1', 'in'], ['lake:in/1#2', 'in'], ['lake:in/1#3', 'in'],
        ['lake:half/1#h', 'half'], ['lake:in/1', 'in'], ['lake:in/2', 'in'], ['lake:old/1#o', 'old']] AS row
CREATE (:Record {id: row[0], dataset: row[1]});
UNWIND [['lake:out/1#a', 'lake:in/1#1', 'whole', 1, 2], ['lake:out/1#a', 'lake:in/1#2', 'whole', 1, 2],
        ['lake:out/1#a', 'lake:in/1#3', 'whole', 1, 2], ['lake:old/1#o', 'lake:in/1#1', 'whole', 0, 1],
        ['lake:half/1#h', 'lake:in/1#1', 'half', 0, 1], ['lake:half/1#h', 'lake:in/1#2', 'half', 0, 1],
        ['lake:in/2', 'lake:in/1', 'declared', 0, 1]] AS row
MATCH (output:Record {id: row[0]}), (input:Record {id: row[1]})
CREATE (output)-[:WAS_DERIVED_FROM {run: row[2], generation: row[3], revision: row[4]}]->(input);
MERGE (source:Dataset {name: 'in'}) MERGE (target:Dataset {name: 'out'})
CREATE (source)-[:FEEDS {run: 'whole', dic: 'd', edges: 3}]->(target)
