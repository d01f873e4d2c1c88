/** Our half of RFB against a real Xvnc: through the agent's handler and the operations, as a guest with a desktop has it. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RfbClient } from "../../daemon/domain/screen/rfb/client.ts";
import { EXTENDED_CLIPBOARD, setEncodings } from "../../daemon/domain/screen/rfb/messages.ts";
import { Canvas } from "../../guest-agent/film/canvas.ts";
import { filmOf, Player } from "../../guest-agent/film/film.ts";
import { connectToScreen } from "../../guest-agent/screen/connect.ts";
import { RECORDED_PER_SECOND, type RecordingRecord } from "../../shared/api/recordings.ts";
import { colourAt } from "../harness/browser/png.ts";
import { missingOf, RealScreen } from "../harness/browser/real-screen.ts";
import { packed, sizeWish } from "../harness/browser/rfb-server.ts";
import { ScreenGuest } from "../harness/browser/screen-guest.ts";

const missing = missingOf("xev", "xsetroot", "xrandr", "xclip");
if (missing.length > 0) console.log(`a real screen: left out, because there is no ${missing.join(" and no ")}`);

const SIZE = [1280, 800] as const;
/** The position of the window that reports its input events. */
const WINDOW = { x: 100, y: 100, width: 400, height: 300 };
const HEARD_MS = 15_000;

const recordings = mkdtempSync("/tmp/roomd-recordings-");
let received = "";
let screen: RealScreen;
let guest: ScreenGuest;

async function until(isSo: () => boolean): Promise<void> {
  const end = performance.now() + HEARD_MS;
  while (!isSo() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 20));
  expect(isSo(), received.slice(-2000)).toBe(true);
}

describe.skipIf(missing.length > 0)("a real screen", { timeout: 60_000 }, () => {
  beforeAll(async () => {
    screen = await RealScreen.start(...SIZE);
    const place = `${WINDOW.width}x${WINDOW.height}+${WINDOW.x}+${WINDOW.y}`;
    const listener = screen.run("stdbuf", ["-oL", "xev", "-geometry", place]);
    listener.stdout?.on("data", (chunk) => {
      received += chunk;
    });
    const paths = { recordings: () => recordings };
    guest = new ScreenGuest((stream) => connectToScreen(stream, screen.socket), { paths });
    await until(() => received.includes("MapNotify"));
  }, 60_000);

  afterAll(() => {
    guest?.screens.stop();
    screen?.stop();
    rmSync(recordings, { recursive: true });
  });

  test("is captured in its own size and smaller", async () => {
    const whole = await guest.picture();
    expect([16, 20].map((at) => Buffer.from(whole).readUInt32BE(at))).toEqual([...SIZE]);
    expect(colourAt(whole, 300, 150)).toEqual([255, 255, 255]);
    expect(colourAt(whole, 1000, 700)).not.toEqual([255, 255, 255]);
    const small = await guest.picture(640);
    expect([16, 20].map((at) => Buffer.from(small).readUInt32BE(at))).toEqual([640, 400]);
    expect(colourAt(small, 150, 75)).toEqual([255, 255, 255]);
  });

  test("has a pointer, which moves and clicks at positions of the picture", async () => {
    const used = await guest.use({ action: "left_click", coordinate: [150, 100], width: 640 });
    expect(used).toMatchObject({ width: 640, height: 400, cursor: [150, 100] });
    await until(() => received.includes("ButtonRelease"));
    expect(received).toMatch(/ButtonPress[^\n]*\n[^\n]*root:\(301,201\)/);
    expect(await guest.use({ action: "cursor_position", width: 640 })).toMatchObject({ cursor: [150, 100] });
  });

  test("holds keys while it clicks", async () => {
    received = "";
    await guest.use({ action: "left_click", coordinate: [300, 200], key: "ctrl", screenshot: false });
    await until(() => received.includes("ButtonRelease"));
    expect(received).toMatch(/ButtonPress[^\n]*\n[^\n]*\n[^\n]*state 0x4,/);
    expect(received).toMatch(/ButtonRelease[^\n]*\n[^\n]*\n[^\n]*state 0x104,/);
  });

  test("shows the pointer, once a program gave it a shape", async () => {
    await guest.use({ action: "mouse_move", coordinate: [900, 600], screenshot: false });
    const before = Buffer.from(await guest.picture());
    expect(spawnSync("xsetroot", ["-display", screen.display, "-cursor_name", "crosshair"]).status).toBe(0);
    let isShown = false;
    for (const end = performance.now() + HEARD_MS; !isShown && performance.now() < end; ) {
      isShown = !before.equals(await guest.picture());
    }
    expect(isShown).toBe(true);
  });

  test("is streamed to two viewers and a driver, and accepts input of the driver only", async () => {
    received = "";
    const seats = [
      await guest.view(),
      await guest.view(await guest.ticket(false)),
      await guest.view(await guest.ticket(true)),
    ];
    const clients = await Promise.all(seats.map(({ wire }) => RfbClient.open(wire)));
    const places = [150, 250, 350];
    for (const [at, client] of clients.entries()) {
      client.point(places[at] ?? 0, 200, 1);
      client.point(places[at] ?? 0, 200, 0);
      await client.current();
    }
    await until(() => received.includes("ButtonRelease"));
    expect([...received.matchAll(/ButtonPress[^\n]*\n[^\n]*root:\((\d+),(\d+)\)/g)].map(([, x]) => x)).toEqual(["350"]);
    // All clients see the effects of one client and of the service's own action.
    expect(spawnSync("xsetroot", ["-display", screen.display, "-solid", "#204060"]).status).toBe(0);
    for (const client of clients) {
      const isBlue = async () => {
        await client.current();
        const { pixels, width } = client.frame;
        return (
          Buffer.from(pixels.subarray((700 * width + 1000) * 4, (700 * width + 1000) * 4 + 3)).toString("hex") ===
          "204060"
        );
      };
      for (const end = performance.now() + HEARD_MS; !(await isBlue()) && performance.now() < end; );
      expect(await isBlue()).toBe(true);
    }
    for (const seat of seats) seat.leave();
  });

  test("accepts any text, and key combinations", async () => {
    received = "";
    await guest.use({ action: "mouse_move", coordinate: [300, 200], screenshot: false });
    await guest.use({ action: "type", text: "aB3é€жB漢ж!", screenshot: false });
    await until(() => received.includes('bytes: (21) "!"'));
    const typed = [...received.matchAll(/KeyPress event[\s\S]*?XLookupString gives \d+ bytes: (?:\(([^)]*)\))?/g)];
    const text = typed.map(([, hex = ""]) => Buffer.from(hex.replaceAll(" ", ""), "hex").toString()).join("");
    expect(text).toBe("aB3é€жB漢ж!");
    await guest.use({ action: "key", text: "ctrl+Page_Down", screenshot: false });
    await until(() => /state 0x4, keycode \d+ \(keysym 0xff56, Next\)/.test(received));
  });

  test("accepts a long text completely", async () => {
    received = "";
    const text = "The quick brown fox jumps over the lazy dog. ".repeat(20);
    await guest.use({ action: "type", text, screenshot: false });
    const pressed = () => received.match(/KeyPress event/g)?.length ?? 0;
    const letters = () =>
      received.match(/KeyPress event[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*XLookupString gives 1 bytes/g)?.length ?? 0;
    await until(() => letters() >= text.length || pressed() > 3 * text.length);
    expect(letters()).toBe(text.length);
  });

  test("scrolls", async () => {
    received = "";
    await guest.use({ action: "scroll", scroll_direction: "down", scroll_amount: 3, screenshot: false });
    await until(() => (received.match(/ButtonRelease[^\n]*\n[^\n]*\n[^\n]*button 5/g)?.length ?? 0) === 3);
  });

  test("is recorded, and played again unchanged", async () => {
    const started = (await guest.recordings("recording_start", { max_seconds: 60 })) as RecordingRecord;
    expect(started).toMatchObject({ state: "recording", end_reason: null, ended_at: null, width: 1280, height: 800 });
    await expect(guest.recordings("recording_start")).rejects.toMatchObject({ code: "already_exists" });
    const { recording_id } = started;
    const recording = async () => (await guest.recordings("recording_get", { recording_id })) as RecordingRecord;
    const size = async () => (await recording()).size_bytes;
    const length = async () => (await recording()).duration_ms;
    // More than the introduction: the initial picture.
    await expect.poll(size, { timeout: HEARD_MS }).toBeGreaterThan(100);
    const shown: Uint8Array[] = [];
    for (const colour of ["#804020", "#208040"]) {
      const before = await size();
      expect(spawnSync("xsetroot", ["-display", screen.display, "-solid", colour]).status).toBe(0);
      await expect.poll(size, { timeout: HEARD_MS }).toBeGreaterThan(before);
      shown.push(await guest.picture());
      // Long enough for a picture of the film.
      await expect.poll(length, { timeout: HEARD_MS }).toBeGreaterThan((await length()) + 2000 / RECORDED_PER_SECOND);
    }
    const ended = (await guest.recordings("recording_stop", { recording_id })) as RecordingRecord;
    expect(ended).toMatchObject({ recording_id, state: "ended", end_reason: "stopped", width: 1280, height: 800 });
    expect(ended.duration_ms).toBeGreaterThan(0);
    expect(await guest.recordings("recording_list")).toEqual({ items: [ended] });

    const data = (await guest.recordings("recording_data", { recording_id })) as Uint8Array;
    expect(data.byteLength).toBe(ended.size_bytes);
    const pictures: Buffer[] = [];
    const player = new Player(new Canvas(1280, 800));
    const film = { lengthMs: ended.duration_ms, perSecond: RECORDED_PER_SECOND };
    // In pieces that fit nothing.
    const pieces = async function* () {
      for (let at = 0; at < data.byteLength; at += 997) yield data.subarray(at, at + 997);
    };
    await filmOf(pieces(), player, film, (picture) => void pictures.push(Buffer.from(picture)));
    expect(Math.abs(pictures.length - (ended.duration_ms / 1000) * RECORDED_PER_SECOND)).toBeLessThan(3);
    const colourOf = (picture: Buffer) => [...picture.subarray((700 * 1280 + 1000) * 4, (700 * 1280 + 1000) * 4 + 3)];
    const colours = pictures.map((picture) => colourOf(picture).join());
    expect(colours).toContain("128,64,32");
    expect(colours.at(-1)).toBe("32,128,64");
    // Every pixel of the last picture is equal to the screen's: its pointer is on a plain background.
    const last = shown.at(-1) as Uint8Array;
    for (const [x, y] of [
      [0, 0],
      [101, 101],
      [300, 150],
      [499, 399],
      [1279, 799],
      [640, 20],
    ] as const) {
      const at = (y * 1280 + x) * 4;
      expect([...(pictures.at(-1) as Buffer).subarray(at, at + 3)]).toEqual(colourAt(last, x, y));
    }
    await guest.recordings("recording_delete", { recording_id });
    await expect(guest.recordings("recording_get", { recording_id })).rejects.toMatchObject({
      code: "recording_not_found",
    });
    expect(readdirSync(recordings)).toEqual([]);
  });

  test("can be resized", async () => {
    expect(spawnSync("xrandr", ["-display", screen.display, "-s", "1024x768"]).status).toBe(0);
    let used = await guest.use({ action: "screenshot" });
    for (const end = performance.now() + HEARD_MS; used.width !== 1024 && performance.now() < end; ) {
      used = await guest.use({ action: "screenshot" });
    }
    expect(used).toMatchObject({ width: 1024, height: 768 });
    const png = Buffer.from(used.screenshot_b64 ?? "", "base64");
    expect([16, 20].map((at) => png.readUInt32BE(at))).toEqual([1024, 768]);
    expect(colourAt(png, 300, 150)).toEqual([255, 255, 255]);
  });

  test("is resized by the driver, within limits, and viewers follow", async () => {
    const [watcher, driver] = [await guest.view(), await guest.view(await guest.ticket(true))];
    const clients = await Promise.all([watcher, driver].map(({ wire }) => RfbClient.open(wire)));
    const become = async (width: number, height: number) => {
      const isSo = () => clients.every(({ frame }) => frame.width === width && frame.height === height);
      for (const end = performance.now() + HEARD_MS; !isSo() && performance.now() < end; ) {
        await Promise.all(clients.map((client) => client.current()));
      }
      expect(clients.map(({ frame }) => [frame.width, frame.height])).toEqual(clients.map(() => [width, height]));
    };
    // Xvnc disconnects clients that have not declared yet that they support resizing.
    await Promise.all(clients.map((client) => client.current()));
    await watcher.wire.write(sizeWish(700, 500));
    await driver.wire.write(sizeWish(100, 100));
    await driver.wire.write(sizeWish(800, 600));
    await become(800, 600);
    expect((await guest.use({ action: "screenshot" })).width).toBe(800);
    await driver.wire.write(sizeWish(1280, 800));
    await become(1280, 800);
    for (const seat of [watcher, driver]) seat.leave();
  });

  test("sends copied text to the driver only", async () => {
    const copiedText = "copied in the sandbox";
    const seats = [
      await guest.view(),
      await guest.view(await guest.ticket(false)),
      await guest.view(await guest.ticket(true)),
    ];
    const heardBy = await Promise.all(
      seats.map(async ({ wire }, at) => {
        const received = { bytes: Buffer.alloc(0) };
        const hear = async () => {
          for await (const bytes of wire.output) received.bytes = Buffer.concat([received.bytes, bytes]);
        };
        hear().catch(() => {});
        const isDriver = at === 2;
        // A viewer that does not declare its capabilities is sent everything that needs no request.
        const encodings = setEncodings(isDriver ? [0] : [0, EXTENDED_CLIPBOARD]);
        await wire.write(packed("RFB 003.008\n", ["u8", 1], ["u8", 1], encodings));
        return received;
      }),
    );
    // All clients are receiving: the server's capabilities, and the desktop's name.
    await until(() =>
      heardBy.every(({ bytes }, at) => bytes.includes(at === 2 ? "@" : Buffer.from([255, 255, 255, 248]))),
    );
    screen.copy(copiedText);
    const [NOTIFIES, PROVIDES] = [8, 16].map((action) => Buffer.from([255, 255, 255, 252, action, 0, 0, 1]));
    await until(() => heardBy.every(({ bytes }, at) => bytes.includes(at === 2 ? copiedText : (NOTIFIES ?? ""))));
    for (const { bytes } of heardBy.slice(0, 2)) {
      expect([bytes.includes(copiedText), bytes.includes((PROVIDES ?? Buffer.alloc(0)).subarray(4))]).toEqual([
        false,
        false,
      ]);
    }
    for (const seat of seats) seat.leave();
  });

  test("reports a missing screen", async () => {
    const none = new ScreenGuest((stream) => connectToScreen(stream, `${screen.socket}-none`));
    await expect(none.picture()).rejects.toMatchObject({ code: "invalid_state" });
  });
});
