/** A result made again, one operator's work after the other: what it looked at, made, and remembered. */
import { useCallback, useEffect, useState } from "react";

import { api, type Session, type Shown, type Step } from "../../api";
import { count, text, time } from "../../words";
import { useLoaded } from "../loading";
import { Empty, Failure, Loading } from "../states";

export function ReplayView({ id }: { id: string }) {
  const [session, again] = useLoaded(useCallback((signal: AbortSignal) => api.replay(id, signal), [id]));
  if (session.state === "loading") return <Loading what="its replay" />;
  if (session.state === "failed") return <Failure error={session.error} onRetry={again} />;
  if (!session.value.steps.length) {
    return <Empty title="Nothing was made">The replay came to no step that leads to this result.</Empty>;
  }
  return <Steps session={session.value} />;
}

function Steps({ session }: { session: Session }) {
  const [at, setAt] = useState(0);
  const last = session.steps.length - 1;
  const to = useCallback((place: number) => setAt(Math.max(0, Math.min(last, place))), [last]);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const places: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
      const place = places[event.key];
      if (place === undefined) return;
      event.preventDefault();
      to(place);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [at, last, to]);
  const step = session.steps[at];
  if (!step) return null;
  return (
    <div className="sheet">
      <h2>Replay</h2>
      <p className="id">{session.result}</p>
      <p className="place">{text(session.content)}</p>
      <p>
        By {session.query}, {session.run}, from{" "}
        {session.checkpoint === null ? "the beginning" : `the checkpoint behind step ${session.checkpoint}`}, given{" "}
        {count(session.events, "event")}.{" "}
        {session.same ? (
          <span className="badge complete">✓ came back as it stands in the lake</span>
        ) : (
          <span className="badge partial">! came back as another</span>
        )}
      </p>
      <div className="steps" role="group" aria-label="Steps">
        <button type="button" className="button" disabled={at === 0} onClick={() => to(at - 1)}>
          ← Previous
        </button>
        <span role="status">
          Step {at + 1} of {session.steps.length.toLocaleString("en")}
        </span>
        <button type="button" className="button" disabled={at === last} onClick={() => to(at + 1)}>
          Next →
        </button>
        <span className="quiet">Arrow keys move, Home and End lead to the first and the last.</span>
      </div>
      <StepCard step={step} />
    </div>
  );
}

function StepCard({ step }: { step: Step }) {
  return (
    <section className="card step" aria-label={`Step ${step.number}`}>
      <h3>
        {step.operator} <span className="quiet">{step.operation}</span> <span className="quiet">{time(step.at)}</span>
      </h3>
      {step.inputs.map((window, number) => (
        <Events key={number} title={step.inputs.length > 1 ? `Inputs ${number + 1}` : "Inputs"} events={window} />
      ))}
      <Events title="Outputs" events={step.outputs} />
      <Memory step={step} />
    </section>
  );
}

function Events({ title, events }: { title: string; events: Shown[] }) {
  const [all, setAll] = useState(false);
  const contributing = events.filter((one) => one.contributes);
  const others = events.length - contributing.length;
  return (
    <>
      <h4>
        {title} <span className="quiet">{events.length.toLocaleString("en")}</span>
      </h4>
      {events.length === 0 && <p className="quiet">None.</p>}
      <ul className="events" aria-label={title}>
        {(all ? events : contributing).map((one, place) => (
          <li key={place} className={one.contributes ? "contributes" : undefined}>
            <span className="quiet">{time(one.timestamp)}</span> <span className="place">{text(one.content)}</span>
            {one.contributes && <em className="tag live">contributes</em>}
            {one.id && <span className="quiet place">{one.id}</span>}
          </li>
        ))}
      </ul>
      {others > 0 && (
        <button type="button" className="link" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show only what contributes" : `and ${others.toLocaleString("en")} that did not contribute`}
        </button>
      )}
    </>
  );
}

function Memory({ step }: { step: Step }) {
  const keys = Object.keys(step.before);
  if (!keys.length) return <p className="quiet">What it remembers did not change.</p>;
  return (
    <>
      <h4>Remembers</h4>
      <table className="memory">
        <thead>
          <tr>
            <th scope="col">Of</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key}>
              <th scope="row" className="place">
                {key}
              </th>
              <td className="place">{text(step.before[key]) || "nothing"}</td>
              <td className="place">{text(step.after[key]) || "nothing"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
