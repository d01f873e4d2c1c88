/** The page of a screen, driven in a real browser at a real screen of this host: its clipboard both ways, and its size. */
import { expect, test } from "vitest";
import { connectToScreen } from "../../guest-agent/screen/connect.ts";
import { missingOf, RealScreen } from "../harness/browser/real-screen.ts";
import { ScreenGuest, type Seat } from "../harness/browser/screen-guest.ts";
import { CHROMIUM, hasBrowser, seenBy } from "../harness/browser/seen-by.ts";
import { TestDaemon } from "../harness/daemon.ts";

const missing = [...missingOf("xclip", "xdpyinfo", "xsetroot"), ...(hasBrowser ? [] : [CHROMIUM])];
if (missing.length > 0) console.log(`the page of a screen: left out, because there is no ${missing.join(" and no ")}`);

const GIVEN = "copied <b>at the screen</b>: gr\u00fc\u00df\u{1f600}\n\u001b[31mred";
const SHOWN = "copied <b>at the screen</b>: gr\u00fc\u00df\u{1f600}\n\u241b[31mred";
const MOST = 64 * 1024;

/** The screen's WebSocket, as the operation answers it, on a separate port. */
function serveViews(guest: ScreenGuest) {
  return Bun.serve<Seat>({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request, server) => {
      const [, ticket] = /roomd\.token\.([\w-]+)/.exec(request.headers.get("sec-websocket-protocol") ?? "") ?? [];
      const seat = await guest.view(ticket);
      const headers = { "sec-websocket-protocol": "binary" };
      return server.upgrade(request, { data: seat, headers }) ? undefined : new Response(null, { status: 400 });
    },
    websocket: {
      open: async (socket) => {
        for await (const bytes of socket.data.wire.output) socket.sendBinary(bytes);
        socket.close();
      },
      message: async (socket, bytes) => await socket.data.wire.write(Buffer.from(bytes)),
      close: (socket) => socket.data.leave(),
    },
  });
}

test.skipIf(missing.length > 0)(
  "the driver receives copied text by a click only, and fits the screen to the window; a viewer can do neither",
  async () => {
    await using daemon = await TestDaemon.start();
    await daemon.room("screens");
    const screen = await RealScreen.start(1280, 800);
    const guest = new ScreenGuest((stream) => connectToScreen(stream, screen.socket));
    const views = serveViews(guest);
    try {
      await screen.output("xsetroot", "-solid", "#204060");
      const does = {
        ticket: () => guest.ticket(true),
        copy: async () => screen.copy(GIVEN),
        "copy-long": async () => screen.copy("x".repeat(MOST + 1000)),
        pasted: () => screen.output("xclip", "-o", "-selection", "clipboard"),
        size: async () => /dimensions:\s+(\d+x\d+)/.exec(await screen.output("xdpyinfo"))?.[1],
      };
      const told = { room: "screens", agent: "clerk", port: views.port };
      const seen = await seenBy("screen-panel-reader.mjs", daemon, told, does);
      expect(seen.clipboard).toEqual({
        shown: SHOWN,
        before: "untouched",
        mine: SHOWN,
        most: MOST,
        marked: [true, MOST],
        pasted: "typed in the hub: gr\u00fc\u00df",
      });
      expect(seen.size).toEqual({ is_room: true, is_told: true, isPressed: "true", back: "1280x800" });
      expect(seen.watched).toEqual({ opened: 1, panels: 0 });
      expect(seen.left).toBe(0);
      expect([seen.complaints, seen.violations, seen.strangers, seen.overflows]).toEqual([[], [], [], []]);
    } finally {
      await views.stop(true);
      guest.screens.stop();
      screen.stop();
    }
  },
  300_000,
);
