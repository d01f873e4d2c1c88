/** Owns how a value of JSON is shown: folded, as deep and as long as one can still read. */
import { visible } from "../parts/text.tsx";

const MOST_DEPTH = 12;
const MOST_ENTRIES = 500;
const MOST_CHARACTERS = 4000;

export function Json({ value }: { value: unknown }) {
  return (
    <div class="json">
      <Value value={value} depth={0} />
    </div>
  );
}

function Value({ value, depth }: { value: unknown; depth: number }) {
  if (typeof value === "string") {
    const rest = value.length - MOST_CHARACTERS;
    return (
      <>
        <span class="json-text">{visible(JSON.stringify(value.slice(0, MOST_CHARACTERS)))}</span>
        {rest > 0 ? <span class="muted"> and {rest} characters more</span> : null}
      </>
    );
  }
  if (value === null || typeof value !== "object") return <span class="json-plain">{String(value)}</span>;
  const entries = Object.entries(value);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return <span class="muted">{`${open}${close}`}</span>;
  if (depth >= MOST_DEPTH) return <span class="muted">{`${open} … ${close}`}</span>;
  return (
    <details open={depth === 0}>
      <summary>
        <span class="muted">{`${open} ${entries.length} ${close}`}</span>
      </summary>
      <ul>
        {entries.slice(0, MOST_ENTRIES).map(([name, each]) => (
          <li key={name}>
            <span class="muted">{visible(name.slice(0, 200))}:</span> <Value value={each} depth={depth + 1} />
          </li>
        ))}
        {entries.length > MOST_ENTRIES ? <li class="muted">and {entries.length - MOST_ENTRIES} more</li> : null}
      </ul>
    </details>
  );
}
