/** Films as they are read: their machine is let go when they end, and a slow reader loses its film. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { makeLog } from "../../../../daemon/core/log.ts";
import { Films } from "../../../../daemon/domain/screen/recordings/film.ts";
import type { OpenFile } from "../../../../daemon/host/files/open-file.ts";
import type { Stream } from "../../../../shared/agent-protocol/link.ts";
import { Channel } from "../../../../shared/agent-protocol/messages.ts";
import type { RecordingRecord } from "../../../../shared/api/recordings.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { linkedGuest } from "../../guest-agent/linked-guest.ts";

const ORG = "org_1" as OrgId;
const PIECE = Buffer.alloc(1024, "x");

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => vi.useRealTimers());

/** Lets pending work on the played link finish. */
const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
};

/** A film of a recording of this length; its machine writes `pieces`, each once the previous one was accepted. */
async function film(durationMs: number, pieces: number) {
  const state = { machine: "none" as "none" | "works" | "gone", orgs: [] as string[], closed: 0 };
  const { link } = linkedGuest({
    exec: async (stream: Stream) => {
      stream.say({ type: "started", pid: 7, at_ms: 0 });
      for (let count = 0; count < pieces; count++) await stream.write(Channel.stdout, PIECE);
      if (pieces === 0) return;
      for (const channel of [Channel.stdout, Channel.stderr]) stream.endChannel(channel);
      stream.finish({ exit_code: 0, signal: null, timed_out: false, started_at_ms: 0, finished_at_ms: 1 });
    },
  });
  const films = new Films({
    log: makeLog("error", () => {}),
    withFilmGuest: async (orgId, work) => {
      state.orgs.push(orgId);
      state.machine = "works";
      try {
        return await work(link);
      } finally {
        state.machine = "gone";
      }
    },
  });
  const file = {
    read: async () => Buffer.alloc(0),
    [Symbol.asyncDispose]: async () => void state.closed++,
  } as unknown as OpenFile;
  const record = { recording_id: "rec_1", width: 2, height: 2, duration_ms: durationMs, size_bytes: 0 };
  const stream = await films.make(ORG, record as RecordingRecord, file, new AbortController().signal);
  return { state, reader: stream.getReader() };
}

/** Reads until the end, with a pause before each piece; resolves to the bytes. */
async function readAll(
  reader: Pick<Awaited<ReturnType<typeof film>>["reader"], "read">,
  pauseMs: number,
): Promise<number> {
  let bytes = 0;
  for (;;) {
    await settled();
    await vi.advanceTimersByTimeAsync(pauseMs);
    const { done, value } = await reader.read();
    if (done) return bytes;
    bytes += value.byteLength;
  }
}

test("a film read to its end is whole, and its machine and file are released", async () => {
  const { state, reader } = await film(10_000, 8);
  expect(state.machine).toBe("works");
  expect(await readAll(reader, 0)).toBe(8 * PIECE.byteLength);
  await settled();
  expect(state).toEqual({ machine: "gone", orgs: [ORG], closed: 1 });
});

test.each([
  ["a film read at playing speed is whole", 1_000, null],
  ["a film whose reader rarely takes a piece breaks off", 30_000, /too slow/],
  ["a film whose reader takes nothing for a minute breaks off", 60_001, /too slow/],
])("%s (a piece each %i ms)", async (_what, pauseMs, broken) => {
  // 60 s and one and a half times its length.
  const { state, reader } = await film(10_000, 8);
  const reading = readAll(reader, pauseMs);
  if (broken) await expect(reading).rejects.toThrow(broken);
  else expect(await reading).toBe(8 * PIECE.byteLength);
  await settled();
  expect(state).toMatchObject({ machine: "gone", closed: 1 });
});

test("the longest film is aborted after eight hours, although its machine still runs", async () => {
  const { state, reader } = await film(4 * 3_600_000, 0);
  const reading = reader.read();
  const broken = expect(reading).rejects.toThrow();
  await vi.advanceTimersByTimeAsync(8 * 3_600_000 - 1);
  await settled();
  expect(state.machine).toBe("works");
  await vi.advanceTimersByTimeAsync(1);
  await broken;
  await settled();
  expect(state).toMatchObject({ machine: "gone", closed: 1 });
});
