/** Parts of operations that stream events. */

const LAST_EVENT_ID = /^\d{1,15}$/;

/** Position of a client that reconnects: its original URL has an earlier one. */
export const positionIn = (lastEventId: string | null): number | undefined =>
  lastEventId !== null && LAST_EVENT_ID.test(lastEventId) ? Number(lastEventId) : undefined;

/** Calls `over` when the reader has taken all values, or leaves. */
export async function* untilEnd<T>(values: AsyncGenerator<T>, over: () => void): AsyncGenerator<T> {
  try {
    yield* values;
  } finally {
    over();
  }
}
