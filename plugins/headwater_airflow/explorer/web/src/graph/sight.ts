/** What of a graph is in sight: only that is drawn, and little of it at a time, so that no frame waits for all of it. */
import { useEffect, useRef, useState } from "react";

import type { Place, Places, Size } from "./layout";

export interface View {
  x: number;
  y: number;
  zoom: number;
  width: number;
  height: number;
}

export interface Ends {
  source: string;
  target: string;
}

/** So many more nodes are drawn in each frame. */
const A_FRAME = 16;
/** So many lines lead out of sight; more would be one grey surface. */
const OUTWARD = 60;
const MARGIN = 160;

function isIn(place: Place | undefined, size: Size, view: View): boolean {
  if (!place) return false;
  const left = -view.x / view.zoom - MARGIN;
  const top = -view.y / view.zoom - MARGIN;
  const right = left + view.width / view.zoom + 2 * MARGIN;
  const bottom = top + view.height / view.zoom + 2 * MARGIN;
  return place.x + size.width > left && place.x < right && place.y + size.height > top && place.y < bottom;
}

export interface Sight<L extends Ends> {
  nodes: string[];
  links: L[];
}

/** Nodes in sight, the links between them, and some that lead further, with the nodes at their other ends. */
export function inSight<L extends Ends>(places: Places, links: readonly L[], size: Size, view: View): Sight<L> {
  const nodes = new Set<string>();
  for (const [id, place] of places) if (isIn(place, size, view)) nodes.add(id);
  const near: L[] = [];
  const outward: L[] = [];
  for (const link of links) {
    const here = nodes.has(link.source);
    const there = nodes.has(link.target);
    if (here && there) near.push(link);
    else if ((here || there) && places.has(link.source) && places.has(link.target)) outward.push(link);
  }
  // Evenly among them, so that the fan points everywhere that they lead.
  const step = Math.max(1, outward.length / OUTWARD);
  const some = Array.from({ length: Math.min(OUTWARD, outward.length) }, (_, at) => outward[Math.floor(at * step)] as L);
  for (const { source, target } of some) nodes.add(source).add(target);
  return { nodes: [...nodes], links: [...near, ...some] };
}

function grown(before: ReadonlySet<string>, wanted: readonly string[]): ReadonlySet<string> {
  const next = new Set(wanted.filter((id) => before.has(id)));
  const kept = next.size;
  for (const id of wanted) {
    if (next.size === kept + A_FRAME) break;
    next.add(id);
  }
  return next.size === kept && kept === before.size ? before : next;
}

/** The ids to draw now: those that are drawn and wanted, and a few more in every frame until all are. */
export function useByFrames(wanted: readonly string[]): ReadonlySet<string> {
  const now = useRef<ReadonlySet<string>>(new Set());
  const [drawn, setDrawn] = useState(now.current);
  useEffect(() => {
    let frame = 0;
    const draw = () => {
      now.current = grown(now.current, wanted);
      setDrawn(now.current);
      if (now.current.size < wanted.length) frame = requestAnimationFrame(draw);
    };
    draw();
    return () => cancelAnimationFrame(frame);
  }, [wanted]);
  return drawn;
}

/** The nearest node from one in the direction of an arrow key. */
export function nextTowards(places: Places, from: string, key: string): string | undefined {
  const here = places.get(from);
  if (!here) return undefined;
  let best: { id: string; far: number } | undefined;
  for (const [id, place] of places) {
    const [dx, dy] = [place.x - here.x, place.y - here.y];
    const [along, across] =
      key === "ArrowRight" ? [dx, dy] : key === "ArrowLeft" ? [-dx, dy] : key === "ArrowDown" ? [dy, dx] : [-dy, dx];
    if (id === from || along <= 1) continue;
    const far = along + 3 * Math.abs(across);
    if (!best || far < best.far) best = { id, far };
  }
  return best?.id;
}
