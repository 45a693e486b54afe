/** What the page shows, kept behind the `#` of its address: that part is never sent, and the back button knows it. */
import { useSyncExternalStore } from "react";

export type Route = { view: "lake" } | { view: "dataset"; name: string } | { view: "record"; id: string };

const LAKE: Route = { view: "lake" };

function read(hash: string): Route {
  const [, view, value] = /^#\/(dataset|record)\/(.+)$/.exec(hash) ?? [];
  if (!view || !value) return LAKE;
  try {
    const text = decodeURIComponent(value);
    return view === "dataset" ? { view, name: text } : { view: "record", id: text };
  } catch {
    return LAKE; // an address that someone cut short
  }
}

let last: { hash: string; route: Route } = { hash: "", route: LAKE };

function current(): Route {
  if (location.hash !== last.hash) last = { hash: location.hash, route: read(location.hash) };
  return last.route;
}

function subscribe(told: () => void): () => void {
  addEventListener("hashchange", told);
  return () => removeEventListener("hashchange", told);
}

export function useRoute(): Route {
  return useSyncExternalStore(subscribe, current);
}

export function go(route: Route): void {
  const value = route.view === "dataset" ? route.name : route.view === "record" ? route.id : "";
  location.hash = route.view === "lake" ? "#/" : `#/${route.view}/${encodeURIComponent(value)}`;
}

/** The DAG on whose page this one stands, if any. */
export const DAG = new URLSearchParams(location.search).get("dag");
