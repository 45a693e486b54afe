/** What is shown while there is nothing to show: loading, nothing there, something wrong. */
import type { ReactNode } from "react";

export function Loading({ what }: { what: string }) {
  return (
    <div className="state" role="status">
      <span className="spinner" aria-hidden="true" />
      <p>Loading {what} …</p>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="state">
      <h2>{title}</h2>
      <p>{children}</p>
    </div>
  );
}

export function Failure({ error, onRetry }: { error: Error; onRetry: () => void }) {
  return (
    <div className="state failure" role="alert">
      <h2>That did not work</h2>
      <p>{error.message}</p>
      <button type="button" className="button primary" onClick={onRetry}>
        Try again
      </button>
    </div>
  );
}

export function Notice({ error, onClose }: { error: Error; onClose: () => void }) {
  return (
    <div className="notice" role="alert">
      <p>{error.message}</p>
      <button type="button" className="button plain" onClick={onClose} aria-label="Close this message">
        ✕
      </button>
    </div>
  );
}
