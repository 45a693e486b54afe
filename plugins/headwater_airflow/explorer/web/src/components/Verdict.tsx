/** Whether provenance is all there, said by colour, sign and word. */
import type { Verdict } from "../api";

const MEANINGS: Record<Verdict, string> = {
  complete: "every run crossed has all its provenance",
  unknown: "a run crossed sent no manifest, so nobody can tell whether all is there",
  partial: "a run crossed has lost messages, or was pruned: records may be missing",
};

const SIGNS: Record<Verdict, string> = { complete: "✓", unknown: "?", partial: "!" };

export function VerdictBadge({ verdict, pruned = false }: { verdict: Verdict; pruned?: boolean }) {
  return (
    <span className={`badge ${verdict}`} title={pruned ? "this run was pruned" : MEANINGS[verdict]}>
      <span aria-hidden="true">{SIGNS[verdict]}</span> {pruned ? "pruned" : verdict}
    </span>
  );
}

export function VerdictDot({ verdict }: { verdict: Verdict }) {
  return <i className={`dot ${verdict}`} role="img" aria-label={`provenance ${verdict}`} title={MEANINGS[verdict]} />;
}
