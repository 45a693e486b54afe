/** What the page shows, kept behind the `#` of its address: that part is never sent, and the back button knows it. */
import { useSyncExternalStore } from "react";

export type StreamRoute =
  | { view: "streams" }
  | { view: "job"; run: string }
  | { view: "result"; id: string }
  | { view: "replay"; id: string };
export type Route = { view: "lake" } | { view: "dataset"; name: string } | { view: "record"; id: string } | StreamRoute;

const LAKE: Route = { view: "lake" };

function read(hash: string): Route {
  if (hash === "#/streams") return { view: "streams" };
  const [, view, value] = /^#\/(dataset|record|job|result|replay)\/(.+)$/.exec(hash) ?? [];
  if (!view || !value) return LAKE;
  try {
    const text = decodeURIComponent(value);
    if (view === "dataset") return { view, name: text };
    return view === "job" ? { view, run: text } : { view: view as "record" | "result" | "replay", id: text };
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
  location.hash = addressOf(route);
}

function addressOf(route: Route): string {
  switch (route.view) {
    case "lake":
      return "#/";
    case "streams":
      return "#/streams";
    case "dataset":
      return `#/dataset/${encodeURIComponent(route.name)}`;
    case "job":
      return `#/job/${encodeURIComponent(route.run)}`;
    default:
      return `#/${route.view}/${encodeURIComponent(route.id)}`;
  }
}

export function isOfStreams(route: Route): route is StreamRoute {
  return route.view === "streams" || route.view === "job" || route.view === "result" || route.view === "replay";
}

/** The DAG on whose page this one stands, if any. */
export const DAG = new URLSearchParams(location.search).get("dag");
