/** Something that is read from the server: there, on its way, or failed. */
import { useCallback, useEffect, useState } from "react";

export type Loaded<T> = { state: "loading" } | { state: "there"; value: T } | { state: "failed"; error: Error };

const LOADING = { state: "loading" } as const;

/** How often what belongs to running stream queries is read again. */
export const NOW_AND_THEN = 5_000;

/** Read again whenever `read` is another function, and now and then while the value is `live`; `again` after a failure. */
export function useLoaded<T>(
  read: (signal: AbortSignal) => Promise<T>,
  isLive: (value: T) => boolean = () => false,
): [Loaded<T>, () => void] {
  const [loaded, setLoaded] = useState<Loaded<T>>(LOADING);
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const gone = new AbortController();
    setLoaded(LOADING);
    read(gone.signal).then(
      (value) => gone.signal.aborted || setLoaded({ state: "there", value }),
      (error: unknown) => gone.signal.aborted || setLoaded({ state: "failed", error: asError(error) }),
    );
    return () => gone.abort();
  }, [read, tries]);
  const live = loaded.state === "there" && isLive(loaded.value);
  useEffect(() => {
    if (!live) return;
    const gone = new AbortController();
    const timer = setInterval(() => {
      if (document.hidden) return;
      // What is shown stays until there is something newer; where that fails, the next time tells.
      read(gone.signal).then(
        (value) => gone.signal.aborted || setLoaded({ state: "there", value }),
        () => undefined,
      );
    }, NOW_AND_THEN);
    return () => {
      gone.abort();
      clearInterval(timer);
    };
  }, [read, live]);
  return [loaded, useCallback(() => setTries((before) => before + 1), [])];
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
