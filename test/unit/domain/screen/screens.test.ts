/** Screens as the operations use them: one connection each, one action at a time, and an end to everything. */
import { randomBytes } from "node:crypto";
import { afterEach, expect, test, vi } from "vitest";
import { FairSemaphore } from "../../../../daemon/core/concurrency/fair-semaphore.ts";
import { DeadlineError } from "../../../../daemon/core/concurrency/published.ts";
import { FrameMemory } from "../../../../daemon/domain/screen/frame-memory.ts";
import { StreamErrorCode } from "../../../../shared/agent-protocol/messages.ts";
import { RfbServer, rectangle, update } from "../../../harness/browser/rfb-server.ts";
import { ScreenGuest, serve } from "../../../harness/browser/screen-guest.ts";

const FULL = expect.objectContaining({ code: "insufficient_capacity" });

const guests: ScreenGuest[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  for (const guest of guests.splice(0)) guest.screens.stop();
});

function guestOf(server: RfbServer, options: { unusedMs?: number } = {}): ScreenGuest {
  const guest = new ScreenGuest(serve(server), options);
  guests.push(guest);
  return guest;
}

const sizeOf = (png: Uint8Array) => [Buffer.from(png).readUInt32BE(16), Buffer.from(png).readUInt32BE(20)];
const until = async (isSo: () => boolean) => {
  for (let tries = 0; tries < 200 && !isSo(); tries++) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(isSo()).toBe(true);
};
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: { code?: string }) => error.code,
  );

test("a picture has the requested width, and one connection serves all", async () => {
  const guest = guestOf(new RfbServer(64, 40));
  expect(sizeOf(await guest.picture())).toEqual([64, 40]);
  expect(sizeOf(await guest.picture(32))).toEqual([32, 20]);
  expect(sizeOf(await guest.picture(4096))).toEqual([64, 40]);
  expect(guest.connected).toBe(1);
});

test("an action acts at its place in the caller's picture, and responds in its size", async () => {
  const server = new RfbServer(64, 40);
  const guest = guestOf(server);
  const used = await guest.use({ action: "left_click", coordinate: [10, 5], width: 32 });
  expect(server.pointers).toEqual([
    [21, 11, 0],
    [21, 11, 1],
    [21, 11, 0],
  ]);
  expect(used).toMatchObject({ action: "left_click", width: 32, height: 20, cursor: [10, 5] });
  expect(sizeOf(Buffer.from(used.screenshot_b64 ?? "", "base64"))).toEqual([32, 20]);
});

test.each<[string, object, [number, number, number][]]>([
  ["mouse_move", { coordinate: [3, 4] }, [[3, 4, 0]]],
  [
    "right_click",
    {},
    [
      [32, 20, 4],
      [32, 20, 0],
    ],
  ],
  [
    "middle_click",
    { coordinate: [1, 1] },
    [
      [1, 1, 0],
      [1, 1, 2],
      [1, 1, 0],
    ],
  ],
  [
    "double_click",
    {},
    [
      [32, 20, 1],
      [32, 20, 0],
      [32, 20, 1],
      [32, 20, 0],
    ],
  ],
  ["triple_click", {}, Array.from({ length: 6 }, (_, n) => [32, 20, (n + 1) % 2])],
  [
    "left_mouse_down",
    { coordinate: [2, 2] },
    [
      [2, 2, 0],
      [2, 2, 1],
    ],
  ],
  [
    "scroll",
    { scroll_direction: "down", scroll_amount: 2 },
    [
      [32, 20, 16],
      [32, 20, 0],
      [32, 20, 16],
      [32, 20, 0],
    ],
  ],
  [
    "scroll",
    { scroll_direction: "left", scroll_amount: 1, coordinate: [0, 0] },
    [
      [0, 0, 0],
      [0, 0, 32],
      [0, 0, 0],
    ],
  ],
])("%s %j", async (action, more, pointers) => {
  const server = new RfbServer(64, 40);
  await guestOf(server).use({ action, ...more, screenshot: false });
  expect(server.pointers).toEqual(pointers);
});

test("a drag has positions between its ends, and releases the button", async () => {
  const server = new RfbServer(64, 40);
  await guestOf(server).use({ action: "left_click_drag", start_coordinate: [0, 0], coordinate: [16, 8] });
  expect(server.pointers.at(0)).toEqual([0, 0, 0]);
  expect(server.pointers.at(1)).toEqual([0, 0, 1]);
  expect(server.pointers.at(5)).toEqual([8, 4, 1]);
  expect(server.pointers.slice(-2)).toEqual([
    [16, 8, 1],
    [16, 8, 0],
  ]);
});

test("a pressed button stays down until it is released", async () => {
  const server = new RfbServer(64, 40);
  const guest = guestOf(server);
  await guest.use({ action: "left_mouse_down", screenshot: false });
  await guest.use({ action: "mouse_move", coordinate: [5, 5], screenshot: false });
  await guest.use({ action: "left_mouse_up", screenshot: false });
  expect(server.pointers).toEqual([
    [32, 20, 1],
    [5, 5, 1],
    [5, 5, 0],
  ]);
});

test("keys go down in their order and up in reverse, during a click too", async () => {
  const server = new RfbServer();
  const guest = guestOf(server);
  await guest.use({ action: "key", text: "ctrl+c", screenshot: false });
  expect(server.keys.splice(0)).toEqual([
    [0xffe3, true],
    [0x63, true],
    [0x63, false],
    [0xffe3, false],
  ]);
  await guest.use({ action: "left_click", key: "shift", screenshot: false });
  expect(server.keys.splice(0)).toEqual([
    [0xffe1, true],
    [0xffe1, false],
  ]);
  await guest.use({ action: "type", text: "hé\n", screenshot: false });
  expect(server.keys.filter(([, isDown]) => isDown).map(([key]) => key)).toEqual([0x68, 0xe9, 0xff0d]);
});

test("a held key is released when the caller disconnects", async () => {
  const server = new RfbServer();
  const guest = guestOf(server);
  const controller = new AbortController();
  const call = { ...guest.call(), signal: controller.signal };
  const held = codeOf(guest.use({ action: "hold_key", text: "a", duration_ms: 30_000 }, call));
  await until(() => server.keys.length === 1);
  controller.abort();
  await held;
  await until(() => server.keys.length === 2);
  expect(server.keys).toEqual([
    [0x61, true],
    [0x61, false],
  ]);
});

test("an action started by a former call is not done twice", async () => {
  const server = new RfbServer();
  const guest = guestOf(server);
  const call = guest.call();
  const recorded: object[] = [];
  call.work.noteFirst = async (started) => void recorded.push(started);
  await guest.use({ action: "type", text: "a", screenshot: false }, call);
  expect(recorded).toEqual([{ action: "type" }]);
  const again = { ...guest.call(), work: Object.assign(guest.call().work, { begun: { action: "type" } }) };
  expect((await guest.use({ action: "type", text: "a" }, again)).screenshot_b64).not.toBeNull();
  expect(server.keys).toHaveLength(2);
});

test("actions run one at a time", async () => {
  const server = new RfbServer();
  const guest = guestOf(server);
  await Promise.all([
    guest.use({ action: "hold_key", text: "a", duration_ms: 50, screenshot: false }),
    guest.use({ action: "key", text: "b", screenshot: false }),
  ]);
  expect(server.keys.map(([key]) => key)).toEqual([0x61, 0x61, 0x62, 0x62]);
});

test("zoom shows a region at the screen's resolution; cursor_position returns no picture", async () => {
  const guest = guestOf(new RfbServer(64, 40));
  const zoomed = await guest.use({ action: "zoom", region: [0, 0, 8, 4], width: 32 });
  expect(sizeOf(Buffer.from(zoomed.screenshot_b64 ?? "", "base64"))).toEqual([16, 8]);
  expect(zoomed).toMatchObject({ width: 32, height: 20 });
  expect(await guest.use({ action: "cursor_position" })).toMatchObject({ cursor: [32, 20], screenshot_b64: null });
});

test.each([
  ["mouse_move", { coordinate: [64, 0] }],
  ["mouse_move", { coordinate: [32, 0], width: 32 }],
  ["left_click_drag", { start_coordinate: [0, 40], coordinate: [0, 0] }],
  ["zoom", { region: [0, 0, 65, 1] }],
])("%s %j is not on the screen", async (action, more) => {
  const server = new RfbServer(64, 40);
  expect(await codeOf(guestOf(server).use({ action, ...more }))).toBe("validation_failed");
  expect(server.pointers).toEqual([]);
});

test.each<[object, string]>([
  [{ action: "mouse_move" }, "coordinate"],
  [{ action: "type", text: "a", coordinate: [1, 1] }, "coordinate"],
  [{ action: "key", text: "nokey" }, "text"],
  [{ action: "left_click", key: "a b" }, "key"],
  [{ action: "type", text: "\u0007" }, "text"],
  [{ action: "zoom", region: [5, 5, 5, 9] }, "region"],
  [{ action: "hold_key", text: "a" }, "duration_ms"],
])("%j violates a rule of %s", async (input, field) => {
  await expect(guestOf(new RfbServer()).use(input)).rejects.toThrow(`"field":"${field}"`);
});

test("an unused connection is closed, and reopened when it is needed", async () => {
  const [first, second] = [new RfbServer(), new RfbServer()];
  const waiting = [first, second];
  const guest = new ScreenGuest((stream) => serve(waiting.shift() as RfbServer)(stream), { unusedMs: 20 });
  guests.push(guest);
  await guest.picture();
  await until(() => first.closed);
  await guest.picture();
  expect(guest.connected).toBe(2);
});

test("a connection ends with its sandbox and with the service; waiting callers get an error", async () => {
  const server = new RfbServer();
  const guest = guestOf(server);
  const waits = codeOf(guest.use({ action: "wait", duration_ms: 100 }));
  await until(() => guest.connected === 1);
  guest.become("paused");
  expect(await waits).toBe("invalid_state");
  await until(() => server.closed);

  const stopped = new RfbServer();
  const other = guestOf(stopped);
  await other.picture();
  other.screens.stop();
  await until(() => stopped.closed);
});

test.each<[string, string, RegExp]>([
  [StreamErrorCode.no_screen, "invalid_state", /\bscreen\b/],
  [StreamErrorCode.unknown_method, "invalid_state", /\bscreen\b/],
  [StreamErrorCode.too_many_streams, "insufficient_capacity", /limit/],
  [StreamErrorCode.internal, "guest_unreachable", /lost/],
])("a guest that responds with %s causes %s", async (errorCode, code, detail) => {
  const guest = new ScreenGuest((stream) => stream.fail(errorCode as StreamErrorCode, "no"));
  guests.push(guest);
  await expect(guest.picture()).rejects.toMatchObject({ code, message: expect.stringMatching(detail) });
});

test("a guest that closes the connection before it starts causes guest_unreachable", async () => {
  const guest = new ScreenGuest((stream) => stream.finish({}));
  guests.push(guest);
  await expect(guest.picture()).rejects.toMatchObject({ code: "guest_unreachable" });
});

test("a server that violates the protocol is reported, and reconnected by the next call", async () => {
  const servers = [new RfbServer(), new RfbServer()];
  const guest = new ScreenGuest((stream) => serve(servers.shift() as RfbServer)(stream));
  guests.push(guest);
  const [first] = servers;
  await guest.picture();
  first?.send(Uint8Array.of(99));
  await until(() => first?.closed === true);
  await guest.picture();
  expect(guest.connected).toBe(2);
});

test("an internal bug is not attributed to the guest", async () => {
  const guest = guestOf(new RfbServer());
  vi.spyOn(FairSemaphore.prototype, "take").mockRejectedValueOnce(new TypeError("a bug"));
  await expect(guest.picture()).rejects.toBeInstanceOf(TypeError);
});

test("a disconnected caller gets that error, and it is not attributed to the guest", async () => {
  const server = new RfbServer();
  const guest = guestOf(server);
  await guest.picture();
  server.isDeaf = true;
  const controller = new AbortController();
  const left = guest.picture(undefined, {}, { ...guest.call(), signal: controller.signal });
  controller.abort();
  await expect(left).rejects.toBe(controller.signal.reason);
});

test.each(["screen", "caller"])("a picture whose %s is gone at its turn is not taken", async (side) => {
  const server = new RfbServer();
  const guest = guestOf(server);
  const controller = new AbortController();
  let places = 0;
  vi.spyOn(FairSemaphore.prototype, "take").mockImplementationOnce(async () => {
    places++;
    if (side === "caller") controller.abort();
    else guest.become("paused");
    await until(() => side === "caller" || server.closed);
    return () => places--;
  });
  const picture = guest.picture(undefined, {}, { ...guest.call(), signal: controller.signal });
  expect(await codeOf(picture)).toBe(side === "caller" ? DOMException.ABORT_ERR : "invalid_state");
  expect(places).toBe(0);
});

test("a picture waiting for its turn ends with the screen", async () => {
  const server = new RfbServer();
  const guest = guestOf(server);
  const waits = Promise.withResolvers<AbortSignal | undefined>();
  const { take } = FairSemaphore.prototype;
  vi.spyOn(FairSemaphore.prototype, "take").mockImplementationOnce(async (_asker, ms, signal) => {
    // All are taken.
    waits.resolve(signal);
    return take.call(
      new FairSemaphore({ all: 0, org: 1, sandbox: 1, waiting: 1 }),
      { org_id: "o", sandbox_id: "s" },
      ms,
      signal,
    );
  });
  const picture = codeOf(guest.picture());
  await waits.promise;
  guest.become("paused");
  expect(await picture).toBe("invalid_state");
});

const noPlace = () => vi.spyOn(FairSemaphore.prototype, "take").mockRejectedValueOnce(new DeadlineError("no place"));

test("a completed action gets a response without a picture if none can be taken", async () => {
  const server = new RfbServer();
  const guest = guestOf(server);
  noPlace();
  expect(await guest.use({ action: "key", text: "a" })).toMatchObject({ action: "key", screenshot_b64: null });
  expect(server.keys).toHaveLength(2);
  for (const input of [{ action: "screenshot" }, { action: "zoom", region: [0, 0, 8, 4] }]) {
    noPlace();
    expect(await codeOf(guest.use(input))).toBe("insufficient_capacity");
  }
  noPlace();
  expect(await codeOf(guest.picture())).toBe("insufficient_capacity");
});

test("an oversized picture is refused, and does not fail its action", { timeout: 60_000 }, async () => {
  const [width, height] = [1600, 1000];
  const server = new RfbServer(width, height);
  const guest = guestOf(server);
  await guest.picture(16);
  const pixels = Buffer.concat(Array.from({ length: 100 }, () => randomBytes((width * height * 4) / 100)));
  server.send(update(rectangle({ x: 0, y: 0, width, height }, 0, pixels)));
  await expect(guest.picture()).rejects.toMatchObject({
    code: "validation_failed",
    message: expect.stringContaining("smaller width"),
  });
  expect((await guest.use({ action: "mouse_move", coordinate: [1, 1] })).screenshot_b64).toBeNull();
  // A screen as the template desktop has it fits, whatever it shows.
  const fits = await guest.use({ action: "zoom", region: [0, 0, 1280, 800] });
  expect(sizeOf(Buffer.from(fits.screenshot_b64 ?? "", "base64"))).toEqual([1280, 800]);
});

test("sixteen actions can wait for their turn, and no more", async () => {
  const server = new RfbServer();
  const guest = guestOf(server);
  const first = codeOf(guest.use({ action: "hold_key", text: "a", duration_ms: 150, screenshot: false }));
  await until(() => server.keys.length === 1);
  const others = Array.from({ length: 17 }, () => codeOf(guest.use({ action: "key", text: "b", screenshot: false })));
  expect(await Promise.all([first, ...others])).toEqual([...Array(17).fill("done"), "insufficient_capacity"]);
});

test("memory for frames is limited, in total and per organization; unused ones are evicted first", () => {
  const unused: [string, () => void][] = [];
  const makeRoom = (orgId: string | null) => {
    const at = unused.findIndex(([of]) => orgId === null || of === orgId);
    const [found] = at === -1 ? [] : unused.splice(at, 1);
    found?.[1]();
    return found !== undefined;
  };
  const memory = new FrameMemory(makeRoom, () => false, 100);
  const give = memory.hold("one", 50);
  expect(() => memory.hold("one", 1)).toThrow(FULL);
  unused.push(["two", memory.hold("two", 40)]);
  // Its own unused frame is evicted; all others stay, however often it requests more than its limit.
  unused.push(["three", memory.hold("three", 10)]);
  expect(() => memory.hold("one", 1)).toThrow(FULL);
  expect(() => memory.hold("two", 51)).toThrow(FULL);
  expect(unused.map(([of]) => of)).toEqual(["three"]);
  // The total is used up: any unused frame is evicted.
  unused.push(["two", memory.hold("two", 40)]);
  memory.hold("four", 40);
  expect(unused.map(([of]) => of)).toEqual([]);
  expect(() => memory.hold("four", 11)).toThrow(FULL);
  expect(() => memory.hold("five", 11)).toThrow(FULL);
  give();
  give();
  memory.hold("five", 50);
  expect(() => memory.hold("six", 11)).toThrow(FULL);
});

test("when all memory is taken, the newest screens of the largest holder end, down to equal shares", () => {
  const held: Record<string, (() => void)[]> = {};
  const cut: string[] = [];
  const cutNewest = (orgId: string) => {
    held[orgId]?.pop()?.();
    cut.push(orgId);
    return true;
  };
  const memory = new FrameMemory(() => false, cutNewest, 100);
  const hold = (orgId: string) => {
    held[orgId] = [...(held[orgId] ?? []), memory.hold(orgId, 10)];
  };
  for (const orgId of ["one", "two"]) for (let n = 0; n < 5; n++) hold(orgId);
  for (let n = 0; n < 3; n++) hold("three");
  expect(cut).toEqual(["one", "two", "one"]);
  expect(() => hold("three")).toThrow(FULL);
  expect(() => hold("one")).toThrow(FULL);
});

test("an organization over its share ends no screens of others", async () => {
  const servers: RfbServer[] = [];
  const handler = (stream: Parameters<ReturnType<typeof serve>>[0]) => {
    const server = new RfbServer(64, 40);
    servers.push(server);
    return serve(server)(stream);
  };
  // Four frames, two of them an organization's.
  const guest = new ScreenGuest(handler, { frameBytes: 4 * 64 * 40 * 4 });
  guests.push(guest);
  for (const sandbox_id of ["a1", "b1", "b2", "b3"]) {
    await guest.picture(undefined, { sandbox_id, org_id: sandbox_id.charAt(0) });
  }
  expect(servers.map(({ closed }) => closed)).toEqual([false, true, false, false]);
  for (const sandbox_id of ["c1", "d1"]) {
    await guest.picture(undefined, { sandbox_id, org_id: sandbox_id.charAt(0) });
  }
  expect(servers.map(({ closed }) => closed)).toEqual([true, true, false, false, false, false]);
});
