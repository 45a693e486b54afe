/** Numbers and ids as people read them. */

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

export function records(dataset: { records: number; more: boolean }): string {
  return dataset.more ? `${dataset.records.toLocaleString("en")}+ records` : count(dataset.records, "record");
}

export interface IdParts {
  dataset: string;
  version: string;
  /** What tells a record from its neighbours: its file and position, or its key. */
  place: string;
}

/** An id in the parts that are shown; an id outside the lake is its own place. */
export function partsOf(id: string): IdParts {
  const [, dataset, version, place] = /^lake:([^/#]+)\/([^/#]+)[/#]?(.*)$/.exec(id) ?? [];
  if (dataset === undefined || version === undefined) return { dataset: "outside the lake", version: "", place: id };
  return { dataset: decoded(dataset), version: decoded(version), place: decoded(place || "the whole version") };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The beginning and the end of a long text: neighbours differ at the end. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = Math.ceil((most - 1) * 0.6);
  return `${text.slice(0, most - 1 - end)}…${text.slice(-end)}`;
}

/** After all times: nothing can come any more. As the server tells it, beyond what a number here holds exactly. */
const END = 2 ** 60;

/** An event's time, in UTC as everywhere; a number where it is no date. */
export function time(milliseconds: number | null): string {
  if (milliseconds === null) return "";
  if (milliseconds >= END) return "all";
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? String(milliseconds) : date.toISOString().replace("T", " ").replace("Z", "");
}

/** A content as JSON on one line. */
export function text(content: unknown): string {
  return content === null || content === undefined ? "" : JSON.stringify(content);
}
