/** What leads from one dataset into another. */
import type { Feed } from "../api";
import { count } from "../words";
import { LiveBadge } from "./Live";
import { VerdictBadge } from "./Verdict";

export function FeedPanel({ feeds }: { feeds: Feed[] }) {
  const [first] = feeds;
  if (!first) return null;
  return (
    <>
      <h2>
        {first.source} → {first.target}
      </h2>
      {feeds.map((feed) => (
        <section key={feed.dic} className="card">
          <h3>
            {feed.dic} {feed.live && <LiveBadge />} <VerdictBadge verdict={feed.verdict} />
          </h3>
          <dl>
            <dt>Derivations</dt>
            <dd>{feed.edges.toLocaleString("en")}</dd>
            <dt>Runs</dt>
            <dd>{count(feed.runs, "run")}</dd>
            <dt>{feed.live ? "Last told" : "Last merged"}</dt>
            <dd>{new Date(feed.merged_at).toLocaleString()}</dd>
          </dl>
        </section>
      ))}
    </>
  );
}
