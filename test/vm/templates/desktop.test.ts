/**
 * The template `desktop`: a script of thirty actions with effects that are read back from the screen; two live viewers and one driver; and
 * the same in the hub, by a person with a browser. Building it takes minutes, so it runs if ROOMD_TEST_LONG is 1.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { colourAt } from "../../harness/browser/png.ts";
import { viewScreen } from "../../harness/browser/screen-viewer.ts";
import { CHROMIUM, hasBrowser, seenBy } from "../../harness/browser/seen-by.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { LONG, until, withGuests } from "../../harness/guests.ts";
import { ownTemplates, shippedTemplate } from "../../harness/images/built-templates.ts";

const BUILD_MS = 1_200_000;
const SLOW_MS = 600_000;
const AT = "/v1/rooms/d/sandboxes/clerk";
/** A key that nothing else presses: j. */
const UNHEARD = 0x6a;
/** A position that has nothing but the program's colour. */
const MIDDLE = [640, 500] as const;
/** The text that a program there copies, and the displayed length of a longer text. */
const COPIED = "copied <b>in the sandbox</b>: gr\u00fc\u00df\u{1f600}";
const MAX_COPIED = 64 * 1024;

/**
 * Paints the whole terminal in a colour that encodes the last input: the key's first byte and the number of bytes, or the mouse's button,
 * column and row. A release adds 128.
 */
const PROGRAM = String.raw`
import os, re, sys, termios, tty
out = lambda text: (sys.stdout.write(text), sys.stdout.flush())
def paint(r, g, b):
    out(f"\x1b[48;2;{r};{g};{b}m\x1b[2J\x1b[H")
tty.setraw(0)
out("\x1b[?25l\x1b[?1003h\x1b[?1006h")
log = open("/tmp/heard", "ab", buffering=0)
paint(1, 2, 3)
held = b""
while True:
    held += os.read(0, 4096)
    while held:
        mouse = re.match(rb"\x1b\[<(\d+);(\d+);(\d+)([Mm])", held)
        if mouse:
            button, column, row = (int(each) for each in mouse.groups()[:3])
            paint(button + (128 if mouse[4] == b"m" else 0), column, row)
            log.write(mouse[0][1:] + b"\n")
            held = held[mouse.end():]
            continue
        if held.startswith(b"\x1b[<") and len(held) < 20:
            break
        key = re.match(rb"\x1b(?:\[[\d;]*[~A-Za-z]|O[A-Za-z])|.", held, re.S)[0]
        log.write(key + b"\n")
        paint(key[0], len(key), 200)
        held = held[len(key):]
`;

const START = `cat >/tmp/program.py
chmod 644 /tmp/program.py; install -m 666 /dev/null /tmp/heard
setsid setpriv --reuid=agent --regid=agent --init-groups --reset-env env DISPLAY=:0 LANG=C.UTF-8 \
  xfce4-terminal --maximize --hide-menubar --hide-scrollbar -x python3 /tmp/program.py >/tmp/terminal.log 2>&1 </dev/null &`;

/** An action, and the colour that confirms it: for positions only its first number. */
type Step = [action: Json, colour: readonly number[]];
const RELEASED = 128;
const place = (x: number, y: number) => ({ coordinate: [x, y] });
const key = (text: string, byte: number, bytes = 1): Step => [{ action: "key", text }, [byte, bytes, 200]];
const typed = (text: string): Step => [{ action: "type", text }, [text.charCodeAt(text.length - 1), 1, 200]];

const STEPS: readonly Step[] = [
  [{ action: "left_click", ...place(200, 200) }, [RELEASED]],
  [{ action: "left_click", ...place(1000, 600) }, [RELEASED]],
  typed("a"),
  typed("some words, and z"),
  key("Return", 13),
  key("ctrl+c", 3),
  [{ action: "right_click", ...place(300, 300) }, [RELEASED + 2]],
  key("Tab", 9),
  [{ action: "middle_click", ...place(900, 300) }, [RELEASED + 1]],
  key("Page_Down", 27, 4),
  key("Up", 27, 3),
  [{ action: "double_click", ...place(500, 400) }, [RELEASED]],
  typed("Q"),
  [{ action: "triple_click", ...place(700, 250) }, [RELEASED]],
  key("BackSpace", 127),
  [{ action: "scroll", scroll_direction: "up", scroll_amount: 3, ...place(640, 400) }, [64]],
  [{ action: "scroll", scroll_direction: "down", scroll_amount: 2, ...place(400, 350) }, [65]],
  [{ action: "mouse_move", ...place(1100, 650) }, [35]],
  typed("!"),
  [{ action: "left_click_drag", start_coordinate: [300, 250], ...place(800, 500) }, [RELEASED]],
  key("ctrl+a", 1),
  [{ action: "left_mouse_down", ...place(350, 350) }, [0]],
  [{ action: "mouse_move", ...place(850, 450) }, [32]],
  [{ action: "left_mouse_up", ...place(850, 450) }, [RELEASED]],
  [{ action: "hold_key", text: "h", duration_ms: 300 }, [104, 1, 200]],
  key("Delete", 27, 4),
  [{ action: "left_click", key: "ctrl", ...place(600, 600) }, [RELEASED]],
  typed("7"),
  [{ action: "wait", duration_ms: 200 }, [55, 1, 200]],
  key("space", 32),
];

if (LONG && !hasBrowser) console.log(`a screen in the hub: left out, because there is no ${CHROMIUM}`);
if (!LONG) console.log("the desktop: left out, because it takes minutes: ROOMD_TEST_LONG=1 runs it");

describe.skipIf(!LONG)("long tests", () => {
  withGuests("desktop", { prepare: async (daemon: TestDaemon) => void ownTemplates(daemon) }, (guests) => {
    const use = (action: Json) => guests.daemon.ok("POST", `${AT}/computer`, action);
    const shownBy = (used: Json) => colourAt(Buffer.from(used.screenshot_b64, "base64"), ...MIDDLE);
    const receivedLines = async () => (await guests.daemon.sh("d", "clerk", "grep -v '^.<' /tmp/heard")).split("\n");

    beforeAll(async () => {
      const { daemon } = guests;
      await shippedTemplate(daemon, "desktop");
      await daemon.room("d");
      const made = await daemon.sandbox("d", "clerk", guests.cid(), { template_id: "desktop", memory_mib: 1024 });
      console.log(`a sandbox with a desktop up, ${made.start_mode}, created in ${made.create_wall_ms} ms`);
      await daemon.exec("d", "clerk", { command: START, stdin: PROGRAM });
      await until(
        "the program is on the screen",
        async () => String(shownBy(await use({ action: "screenshot" }))) === "1,2,3",
        SLOW_MS,
      );
    }, BUILD_MS);

    test(
      `${STEPS.length} actions are performed, and the screen shows it`,
      async () => {
        expect(STEPS.length).toBe(30);
        /** Column and row of the cells at these places. */
        const cells: [place: number[], cell: number[]][] = [];
        let before = "";
        for (const [action, colour] of STEPS) {
          let used = await use(action);
          // The program may paint a little after the screen has settled. An action at another position gives another colour than before.
          const isOther = () => !action.coordinate || String(shownBy(used)) !== before;
          const isSo = () => isOther() && String(shownBy(used).slice(0, colour.length)) === String(colour);
          for (let tries = 0; tries < 20 && !isSo(); tries++) used = await use({ action: "screenshot" });
          expect([action, shownBy(used).slice(0, colour.length), isOther()]).toEqual([action, colour, true]);
          before = String(shownBy(used));
          if (action.coordinate) cells.push([action.coordinate, shownBy(used).slice(1)]);
        }
        // The terminal reports ctrl only with the press.
        expect(await guests.daemon.sh("d", "clerk", "grep -c '<16;' /tmp/heard")).toBe("1");
        const [[one, oneCell], [other, otherCell]] = cells as [(typeof cells)[0], (typeof cells)[0]];
        for (const axis of [0, 1]) {
          const of = (values: number[]) => values[axis] ?? Number.NaN;
          const size = (of(other) - of(one)) / (of(otherCell) - of(oneCell));
          for (const [at, cell] of cells) {
            expect(Math.abs(of(oneCell) + (of(at) - of(one)) / size - of(cell))).toBeLessThanOrEqual(1.5);
          }
        }
      },
      SLOW_MS,
    );

    test(
      "two viewers watch it live, and one drives",
      async () => {
        const { daemon } = guests;
        const ticket = async (drive: boolean) => (await daemon.ok("POST", `${AT}/screen/ticket`, { drive })).ws_path;
        const paths = [`${AT}/screen/ws`, await ticket(false), await ticket(true)];
        const viewers = await Promise.all(paths.map((path) => viewScreen(daemon, path)));
        const [watcher, guest, driver] = viewers;
        for (const each of [watcher, guest]) {
          each?.client.key(UNHEARD, true);
          each?.client.key(UNHEARD, false);
          await each?.client.current();
        }
        for (const letter of ["v", "w"]) {
          driver?.client.key(letter.charCodeAt(0), true);
          driver?.client.key(letter.charCodeAt(0), false);
          for (const { client } of viewers) {
            await until(`${letter} is seen`, async () => {
              await client.current();
              const at = (MIDDLE[1] * client.frame.width + MIDDLE[0]) * 4;
              return String([...client.frame.pixels.subarray(at, at + 3)]) === String([letter.charCodeAt(0), 1, 200]);
            });
          }
        }
        expect((await receivedLines()).slice(-2)).toEqual(["v", "w"]);
        expect(await receivedLines()).not.toContain("j");
        await daemon.ok("POST", `${AT}/standby`, {});
        for (const { closed } of viewers) expect((await closed)[0]).toBe(4003);
        await daemon.ok("POST", `${AT}/resume`, {});
        const { items } = await until("the input is recorded", async () => {
          const records = await daemon.ok("GET", "/v1/rooms/d/audit?event=screen.driven");
          return records.items.length > 0 && records;
        });
        expect(items).toMatchObject([{ details: { reason: "sandbox_stopped" } }]);
      },
      SLOW_MS,
    );

    test.skipIf(!hasBrowser)(
      "a person views it in the hub, and drives it with a ticket",
      async () => {
        const { daemon } = guests;
        const asAgent = "setpriv --reuid=agent --regid=agent --init-groups --reset-env env DISPLAY=:0 LANG=C.UTF-8";
        const copy = async (stdin: string) => {
          // It runs on in the background, to serve the copied text to programs that paste.
          const command = `setsid --wait ${asAgent} xclip -selection clipboard >/dev/null 2>&1`;
          expect((await daemon.exec("d", "clerk", { command, stdin })).exit_code).toBe(0);
        };
        const does = {
          copy: () => copy(COPIED),
          "copy-long": () => copy("x".repeat(MAX_COPIED + 1000)),
          pasted: () => daemon.sh("d", "clerk", `${asAgent} xclip -o -selection clipboard`),
          size: () =>
            daemon.sh("d", "clerk", `${asAgent} xdpyinfo | sed -n 's/^ *dimensions: *\\([0-9x]*\\) .*/\\1/p'`),
          ticket: async () => (await daemon.ok("POST", `${AT}/screen/ticket`, { drive: true })).ticket as string,
          heard: async () => (await receivedLines()).at(-1) ?? "",
          pause: async () => void (await daemon.ok("POST", `${AT}/standby`, {})),
          resume: async () => void (await daemon.ok("POST", `${AT}/resume`, {})),
        };
        const seen = await seenBy("screen-reader.mjs", daemon, { room: "d", agent: "clerk" }, does);
        // Leaving takes three presses of Esc, of which these are typed. A key pressed by a viewer reached no program.
        expect(seen.heard).toEqual(["p", "\x1b"]);
        expect(seen.clipboard).toEqual({
          shown: COPIED,
          before: "untouched",
          mine: COPIED,
          most: MAX_COPIED,
          marked: [true, MAX_COPIED],
          pasted: "typed in the hub: gr\u00fc\u00df",
        });
        expect(seen.size).toEqual({ is_room: true, is_told: true, isPressed: "true", back: "1280x800" });
        // The browser also reports an invalid ticket and a paused sandbox.
        const isTold = (text: string) => /screen\/ws|Failed when connecting|status of 409/.test(text);
        const complaints = seen.complaints.filter((text: string) => !isTold(text));
        expect([complaints, seen.violations, seen.strangers, seen.overflows]).toEqual([[], [], [], []]);
      },
      SLOW_MS,
    );
  });
});
