/** Records with the same neighbours stand together: arranged as one block, a thousand of them are one thing to arrange. */

export interface Link {
  /** Data flows from left to right: from an input to the output that was made from it. */
  source: string;
  target: string;
}

export interface Bundle {
  id: string;
  members: string[];
}

/** Which bundle each node is in, in the order of the nodes; those that have to be `alone` are. */
export function bundle(nodes: readonly string[], links: readonly Link[], alone: (node: string) => boolean): Bundle[] {
  const places = new Map(nodes.map((node, place) => [node, place]));
  const neighbours: number[][] = nodes.map(() => []);
  for (const { source, target } of links) {
    const from = places.get(source);
    const to = places.get(target);
    if (from === undefined || to === undefined) continue;
    // The side matters: what is made from a record stands across from what it was made of.
    neighbours[from]?.push(to * 2);
    neighbours[to]?.push(from * 2 + 1);
  }
  const bundles = new Map<string, Bundle>();
  nodes.forEach((node, place) => {
    const around = neighbours[place] ?? [];
    const key = around.length && !alone(node) ? around.sort((a, b) => a - b).join(" ") : `alone ${place}`;
    const known = bundles.get(key);
    if (known) known.members.push(node);
    else bundles.set(key, { id: node, members: [node] });
  });
  return [...bundles.values()];
}
