/** Shows untrusted JSON: objects and arrays are collapsible, and everything is text. */
import { countText, Foreign } from "./text.tsx";

/** Deeper or larger parts are shown as one line of text. */
const DEEPEST = 8;
const MAX_PARTS = 200;

export function Json({
  name,
  value,
  isOpen = false,
  depth = 0,
}: {
  name: string;
  value: unknown;
  isOpen?: boolean;
  depth?: number;
}) {
  const label = <Foreign text={name} most={100} mono />;
  if (value === null || typeof value !== "object" || depth >= DEEPEST) {
    return (
      <div class="json">
        <span class="muted">{label}</span> <Foreign text={JSON.stringify(value) ?? "–"} most={2000} mono />
      </div>
    );
  }
  const parts = Object.entries(value);
  const kind = Array.isArray(value) ? "list" : "object";
  return (
    <details class="json" open={isOpen}>
      <summary>
        {label} <span class="muted">{`${kind} of ${countText(parts.length)}`}</span>
      </summary>
      {parts.slice(0, MAX_PARTS).map(([each, inner]) => (
        <Json key={each} name={each} value={inner} depth={depth + 1} />
      ))}
      {parts.length > MAX_PARTS ? (
        <p class="muted">… {countText(parts.length - MAX_PARTS)} more: copy it to see all.</p>
      ) : null}
    </details>
  );
}
