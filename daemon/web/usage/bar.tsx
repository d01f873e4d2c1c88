/** A bar that illustrates the number next to it. */
export function Bar({ share, isHigh = false }: { share: number; isHigh?: boolean }) {
  const width = `${Math.min(100, Math.max(share > 0 ? 1 : 0, share * 100))}%`;
  return (
    <span class={isHigh ? "bar is-high" : "bar"} aria-hidden="true">
      <i style={{ width }} />
    </span>
  );
}
