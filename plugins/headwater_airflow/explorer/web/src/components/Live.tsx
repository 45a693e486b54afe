/** Whether a run goes on, and whether more may be made from a record, said by colour, sign and word. */
import type { InRun, State } from "../api";

const MEANINGS: Record<State, string> = {
  live: "a running stream query may still make something from it",
  unsure: "a running stream query reads its dataset and has not told of it: it is not surely expired",
  expired: "nothing more is made from it by running stream queries",
  unknown: "no running stream query knows of it",
};

const WORDS: Record<State, string> = { live: "live", unsure: "not surely expired", expired: "expired", unknown: "" };

export function StateBadge({ state }: { state: State }) {
  if (state === "unknown") return null;
  return (
    <span className={`badge state-${state}`} title={MEANINGS[state]}>
      <i className="pulse" aria-hidden="true" /> {WORDS[state]}
    </span>
  );
}

export function LiveBadge() {
  return (
    <span className="badge state-live" title="this stream query is running, and its derivations are told as they are made">
      <i className="pulse" aria-hidden="true" /> live
    </span>
  );
}

export function LiveIn({ runs }: { runs: InRun[] }) {
  if (!runs.length) return null;
  return (
    <ul className="live-in" aria-label="In running stream queries">
      {runs.map((one) => (
        <li key={one.run}>
          <StateBadge state={one.state} /> in {one.query} <span className="id">{one.run}</span>
        </li>
      ))}
    </ul>
  );
}
