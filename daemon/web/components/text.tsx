/**
 * Formatting of timestamps, durations, sizes, and text from guests, which is always shown as text. Control characters are shown as signs,
 * and characters that reverse the text direction have no effect outside of their element.
 */
import { computed, signal } from "@preact/signals";
import { visible } from "./visible.ts";

export { visible };

/** The current time, updated every ten seconds while the tab is visible. */
const tick = signal(Date.now());
setInterval(() => {
  if (!document.hidden) tick.value = Date.now();
}, 10_000);
export const nowMs = computed(() => tick.value);

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `4 min`, `3 h 20 min`, `41.3 s`, `12 ms`. */
export function spanText(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return "–";
  if (ms < SECOND) return `${ms < 10 ? Number(ms.toFixed(1)) : Math.round(ms)} ms`;
  if (ms < MINUTE) return `${ms < 10 * SECOND ? (ms / SECOND).toFixed(1) : Math.round(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) {
    const minutes = Math.floor((ms % HOUR) / MINUTE);
    return `${Math.floor(ms / HOUR)} h${minutes ? ` ${minutes} min` : ""}`;
  }
  return `${Math.floor(ms / DAY)} d`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** `64 MiB`. */
export function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${UNITS[unit]}`;
}

export const countText = (count: number) => count.toLocaleString("en");

const utc = signal(localStorage.getItem("utc") === "yes");
export const isUtc = computed(() => utc.value);

export function showUtc(is: boolean): void {
  localStorage.setItem("utc", is ? "yes" : "no");
  utc.value = is;
}

/** Created once: creating a format takes longer than rendering a whole row. */
const formatsOf = (zone: Intl.DateTimeFormatOptions) => ({
  day: new Intl.DateTimeFormat("en-CA", { dateStyle: "short", ...zone }),
  time: new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", hour12: false, ...zone }),
});
const HERE = formatsOf({});
const IN_UTC = formatsOf({ timeZone: "UTC" });

/** `12:15:58`; for another day, preceded by the date. */
export function clockText(at: string | number): string {
  const { day, time } = utc.value ? IN_UTC : HERE;
  const date = day.format(new Date(at));
  const clock = time.format(new Date(at));
  return date === day.format(nowMs.value) ? clock : `${date} ${clock}`;
}

const exact = (at: string) => (utc.value ? at.replace("T", " ").replace("Z", " UTC") : `${new Date(at).toString()}`);

/** A moment as its age; the title has the exact time. */
export function Ago({ at, none = "never" }: { at: string | null; none?: string }) {
  if (at === null) return <span class="muted">{none}</span>;
  const ms = nowMs.value - Date.parse(at);
  return (
    <time dateTime={at} title={exact(at)}>
      {ms < 10 * SECOND ? "now" : ms < MINUTE ? "less than a minute ago" : `${spanText(ms)} ago`}
    </time>
  );
}

/** Duration of something in progress, up to now. */
export function Since({ at }: { at: string }) {
  // It may have started after the last tick.
  const ms = Math.max(nowMs.value, Date.now()) - Date.parse(at);
  return (
    <time dateTime={at} title={exact(at)}>
      {ms < SECOND ? "a moment" : spanText(ms)}
    </time>
  );
}

export function Clock({ at }: { at: string }) {
  return (
    <time class="mono" dateTime={at} title={exact(at)}>
      {clockText(at)}
    </time>
  );
}

/** A name or other untrusted text, on one line, truncated if it is too long. */
export function Foreign({ text, most = 200, mono = false }: { text: string; most?: number; mono?: boolean }) {
  const shown = visible(text.length > most ? `${text.slice(0, most)}…` : text).replaceAll("\n", "␊");
  return (
    <bdi class={mono ? "mono" : undefined} title={text.length > most ? visible(text.slice(0, 2000)) : undefined}>
      {shown}
    </bdi>
  );
}
