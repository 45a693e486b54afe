/** Says why no contents are shown. */
export function Hidden({ may }: { may: boolean }) {
  if (may) return null;
  return <p className="quiet">Contents may be personal: who may start a purge sees them.</p>;
}
