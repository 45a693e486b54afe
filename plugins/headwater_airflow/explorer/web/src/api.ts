/** The explorer's API, and the two calls of Airflow's own that start a purge. */
import { AIRFLOW } from "./leave";

export type Verdict = "complete" | "partial" | "unknown";
/** What a record is in stream queries that are running; `unsure` is not surely expired. */
export type State = "live" | "expired" | "unsure" | "unknown";
export type Direction = "backward" | "forward";
export type ExportFormat = "prov-json" | "prov-n" | "dot" | "svg" | "json";

export interface Dataset {
  name: string;
  records: number;
  more: boolean;
}

export interface Feed {
  source: string;
  target: string;
  dic: string;
  runs: number;
  edges: number;
  verdict: Verdict;
  merged_at: string;
  live: boolean;
}

export interface Overview {
  datasets: Dataset[];
  feeds: Feed[];
  may_purge: boolean;
}

export interface ListedRecord {
  id: string;
  dataset: string | null;
  purge: string | null;
  state?: State;
}

export interface Found {
  datasets: string[];
  records: ListedRecord[];
  more: boolean;
}

export interface DagRun {
  dag_id: string;
  run_id: string;
}

export interface CrossedRun {
  run: string;
  dic: string;
  verdict: Verdict;
  pruned?: boolean;
  live?: boolean;
  dag_run: DagRun | null;
}

export interface RunFacts extends CrossedRun {
  declared: boolean;
  generation: number;
  marks: string[];
  merged_at: string | null;
  edges: number | null;
  messages: number | null;
  duplicates: number | null;
  discarded: number | null;
  rejected: number | null;
  missing: number;
  watermark: number | null;
  reach: number | null;
}

export interface Edge {
  output: string;
  input: string;
  run: string;
}

export interface Neighbours {
  /** Of the record whose neighbours these are. */
  state: State;
  verdict: Verdict;
  total: number;
  records: ListedRecord[];
  more: number;
  edges: Edge[];
  runs: CrossedRun[];
  moment: string;
}

export interface Side {
  records: number;
  verdict: Verdict;
}

/** What a record is in one running stream query; times are milliseconds. */
export interface InRun {
  run: string;
  query: string;
  state: State;
  time: number | null;
  watermark: number | null;
  reach: number | null;
}

export interface RecordFacts {
  id: string;
  purge: string | null;
  state: State;
  live: InRun[];
  backward: Side;
  forward: Side;
}

export interface Selection {
  selection: string;
  datasets: Record<string, number>;
  dag_id: string;
}

export interface Param {
  value: unknown;
  description: string | null;
  schema: { title?: string; type?: string | string[]; description?: string };
}

/** A run of a stream query; times are milliseconds. */
export interface Job {
  run: string;
  query: string;
  state: "running" | "finished";
  until: number | null;
  late: number;
  rejected: number;
  read: string[];
  results: string[];
  heard: string;
  faults: string[];
}

/** Of a run under way, how much of what it told is not in the lake graph yet; null where it tells nothing. */
export interface Lag {
  lag: number | null;
  faults: string[];
}

export interface Result {
  id: string;
  dataset: string;
  time: number;
  content: unknown;
}

export interface Results {
  results: Result[];
  may_see_contents: boolean;
}

export interface SourceOf {
  id: string;
  stream: string;
  time: number;
  step: number;
  checkpoint: number | null;
  content: unknown;
}

export interface Sources {
  result: string;
  run: string;
  query: string;
  exact: boolean;
  sources: SourceOf[];
  note: string | null;
  may_see_contents: boolean;
}

export interface Shown {
  stream: string;
  timestamp: number;
  content: unknown;
  contributes: boolean;
  id: string | null;
}

/** One operator at work once. */
export interface Step {
  number: number;
  operator: string;
  operation: string;
  at: number;
  inputs: Shown[][];
  outputs: Shown[];
  before: Record<string, unknown>;
  after: Record<string, unknown>;
}

export interface Session {
  result: string;
  run: string;
  query: string;
  content: unknown;
  checkpoint: number | null;
  given: "contributing" | "lane";
  events: number;
  same: boolean;
  steps: Step[];
}

/** What went wrong, in the server's own sentence where it had one. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

async function call(address: URL, init?: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(address, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "Airflow's server does not answer. Check that it runs, then try again.");
  }
  if (answer.ok) return answer;
  throw new ApiError(answer.status, await sentence(answer));
}

async function sentence(answer: Response): Promise<string> {
  if (answer.status === 401) return "You are not logged in to Airflow any more: reload the page to log in.";
  if (answer.status === 403) return "Your Airflow role does not allow this. Ask an administrator for the right to it.";
  try {
    const { detail } = (await answer.json()) as { detail: unknown };
    return typeof detail === "string" ? detail : JSON.stringify(detail);
  } catch {
    return `Airflow's server answered ${answer.status}. Its log tells more.`;
  }
}

async function get<T>(path: string, query: Record<string, string | number> = {}, signal?: AbortSignal): Promise<T> {
  const address = new URL(`api/${path}`, location.href.split(/[?#]/)[0]);
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, String(value));
  return (await (await call(address, { signal })).json()) as T;
}

function posted(body: unknown, signal?: AbortSignal): RequestInit {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal };
}

async function post(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  return call(new URL(`api/${path}`, location.href.split(/[?#]/)[0]), posted(body, signal));
}

export const api = {
  overview: (dag: string | null, signal?: AbortSignal) => get<Overview>("overview", dag ? { dag } : {}, signal),
  record: (id: string, signal?: AbortSignal) => get<RecordFacts>("record", { id }, signal),
  run: (run: string, signal?: AbortSignal) => get<RunFacts>("run", { run }, signal),
  neighbours: (id: string, direction: Direction, depth: number, first: number, limit: number) =>
    get<Neighbours>("neighbours", { id, direction, depth, first, limit }),
  search: async (
    body: { text: string; dataset?: string; after?: string; limit?: number },
    signal?: AbortSignal,
  ): Promise<Found> => (await (await post("search", body, signal)).json()) as Found,
  export: async (body: { id: string; direction: Direction; format: ExportFormat }): Promise<Blob> =>
    (await post("export", body)).blob(),
  select: async (body: SelectionBody): Promise<Selection> =>
    (await (await post("selections", body)).json()) as Selection,
  jobs: (signal?: AbortSignal) => get<Job[]>("streams/jobs", {}, signal),
  lags: (signal?: AbortSignal) => get<Record<string, Lag>>("streams/lags", {}, signal),
  results: (query: Record<string, string | number>, signal?: AbortSignal) =>
    get<Results>("streams/results", query, signal),
  sources: (id: string, signal?: AbortSignal) => get<Sources>("streams/sources", { id }, signal),
  replay: (id: string, signal?: AbortSignal) => get<Session>("streams/replay", { id }, signal),
};

export type SelectionBody =
  | { by: "ids"; ids: string[] }
  | { by: "keys"; dataset: string; keys: string[][] }
  | { by: "where"; dataset: string; where: string };

function dagAddress(dag: string, what: string): URL {
  return new URL(`api/v2/dags/${encodeURIComponent(dag)}/${what}`, AIRFLOW);
}

/** The parameters that a DAG's form asks for. */
export async function readParams(dag: string): Promise<Record<string, Param>> {
  const details = (await (await call(dagAddress(dag, "details"))).json()) as { params: Record<string, Param> | null };
  return details.params ?? {};
}

/** Start a DAG as its form would; Airflow checks the permission and the parameters. */
export async function trigger(dag: string, conf: Record<string, unknown>): Promise<string> {
  const answer = await call(dagAddress(dag, "dagRuns"), posted({ logical_date: null, conf }));
  return ((await answer.json()) as { dag_run_id: string }).dag_run_id;
}
