CALL () {
  MATCH ()-[e:WAS_DERIVED_FROM]->()
  RETURN count(e) AS edges
}
CALL () {
  MATCH ()-[f:FEEDS]->()
  RETURN count(f) AS feeds
}
CALL () {
  MATCH (node:Run|Dataset|Version)
  RETURN count(node) AS nodes
}
RETURN edges, feeds, nodes
