/** Keyboard shortcuts, and the list of them that `?` shows. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { boot } from "./boot.ts";
import { go } from "./router.ts";

const WAYS: Record<string, readonly [to: string, name: string]> = {
  h: ["/", "Home"],
  r: ["/rooms", "Rooms"],
  a: ["/audit", "Audit"],
  u: ["/usage", "Usage"],
  p: ["/prompts", "Prompts"],
  k: ["/account/keys", "API keys"],
  ...(boot.sees_hosts ? { o: ["/hosts", "Hosts"] as const } : {}),
};

const KEYS: readonly (readonly [keys: string, does: string])[] = [
  ["/", "search on this page"],
  ["j", "next row"],
  ["k", "row before"],
  ["Enter", "open the row"],
  ["Esc", "leave the search, close this list"],
  ["?", "show this list"],
  ...Object.entries(WAYS).map(([key, [, name]]) => [`g ${key}`, `go to ${name}`] as const),
];

const isListShown = signal(false);
/** Maximum time between the two keys of a shortcut. */
const PAIR_MS = 1500;
let firstAt = Number.NEGATIVE_INFINITY;

const isTyped = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

function step(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  const at = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = rows[at === -1 ? (by === 1 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
    const { key, target } = event;
    if (key === "Escape") {
      isListShown.value = false;
      if (isTyped(target)) (target as HTMLElement).blur();
      return;
    }
    if (isTyped(target) || (target as Element | null)?.closest?.("[data-keys]")) return;
    const isSecond = performance.now() - firstAt < PAIR_MS;
    firstAt = Number.NEGATIVE_INFINITY;
    if (isSecond && WAYS[key]) go(WAYS[key][0]);
    else if (key === "g") firstAt = performance.now();
    else if (key === "j") step(1);
    else if (key === "k") step(-1);
    else if (key === "?") isListShown.value = !isListShown.value;
    else if (key === "/") document.querySelector<HTMLElement>("[data-search]")?.focus();
    else return;
    event.preventDefault();
  });
}

export function KeyList() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isShown = isListShown.value;
  useEffect(() => {
    if (isShown) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isShown]);
  return (
    <dialog
      ref={dialog}
      class="keys"
      aria-labelledby="keys-title"
      onClose={() => {
        isListShown.value = false;
      }}
    >
      <h2 id="keys-title">Keys</h2>
      <dl>
        {KEYS.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit" class="button">
          Close
        </button>
      </form>
    </dialog>
  );
}
