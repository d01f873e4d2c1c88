/** Results shortened to the limits of an answer. */

type Fields = Record<string, unknown>;

/** Longest result as JSON, which is in a response twice, if the client gave no limit. */
export const MAX_RESULT = 18_000;
/** The same for a list, if the client gave a limit. */
export const MAX_LIMITED_RESULT = 256 * 1024;
const MAX_WORDS = 2_000;

/** Truncates lists and texts of a result that is too long, and adds how much is left out. */
export function bounded(result: Fields, most = MAX_RESULT): Fields {
  if (sizeOf(result) <= most) return result;
  const lists = Object.entries(result).filter((member): member is [string, unknown[]] => Array.isArray(member[1]));
  const [longest] = lists.sort(([, one], [, other]) => sizeOf(other) - sizeOf(one));
  if (!longest || longest[1].length === 0) return clipped(result);
  const [name, list] = longest;
  const rest = sizeOf({ ...result, [name]: [] });
  let [shown, size] = [0, rest];
  for (const item of list) {
    size += sizeOf(item) + 1;
    if (size > most) break;
    shown += 1;
  }
  if (shown === 0) return clipped({ ...result, [name]: list.slice(0, 1).map((item) => clippedValue(item, MAX_WORDS)) });
  return { ...result, [name]: list.slice(0, shown), [`${name}_left_out`]: list.length - shown };
}

export interface Inbox {
  items: { seq: number; payload?: unknown; payload_left_out?: number }[];
  next_after: number;
  next_cursor?: string | null;
}

const SHOWN_PAYLOAD = 4000;

/**
 * As many messages as fit an answer; if a single message does not fit, the beginning of its payload. Later calls with `next_after` return
 * the rest; the cursor of the whole page would skip it.
 */
export function boundedInbox(whole: Inbox, most = MAX_RESULT): Inbox {
  if (sizeOf(whole) <= most) return whole;
  const inbox = { ...whole, ...("next_cursor" in whole ? { next_cursor: null } : {}) };
  const { items } = bounded({ items: inbox.items }, most) as Pick<Inbox, "items">;
  const [first] = items;
  if (items.length === 1 && first && sizeOf(inbox.items[0]) > most) {
    const text = JSON.stringify(inbox.items[0]?.payload) ?? "";
    const payload = text.slice(0, SHOWN_PAYLOAD);
    const message = { ...inbox.items[0], seq: first.seq, payload, payload_left_out: text.length - payload.length };
    return { ...inbox, items: [message], next_after: first.seq };
  }
  return { ...inbox, items, next_after: items.at(-1)?.seq ?? inbox.next_after };
}

const clipped = (result: Fields) => clippedValue(result, MAX_WORDS) as Fields;

function clippedValue(value: unknown, most: number): unknown {
  if (typeof value === "string") return clip(value, most);
  if (Array.isArray(value)) return value.slice(0, 50).map((each) => clippedValue(each, most));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, clippedValue(member, most)]));
}

export const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? "");

export function clip(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}… (${text.length - most} more characters)`;
}
