/**
 * Recordings of a screen: made in a sandbox with a desktop, played in the hub, exported as a film, which another sandbox reads. Building
 * both templates takes minutes, so it runs if ROOMD_TEST_LONG is 1.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { RecordingRecord } from "../../shared/api/recordings.ts";
import { colourAt } from "../harness/browser/png.ts";
import { CHROMIUM, hasBrowser, seenBy } from "../harness/browser/seen-by.ts";
import type { Json, TestDaemon } from "../harness/daemon.ts";
import { LONG, until, withGuests } from "../harness/guests.ts";
import { ownTemplates, shippedTemplate } from "../harness/images/built-templates.ts";

const BUILD_MS = 1_200_000;
const SLOW_MS = 600_000;
const AT = "/v1/rooms/d/sandboxes/clerk";
/** A position that has nothing but the terminal's background. */
const MIDDLE = [640, 500] as const;
const COLOURS = [
  [200, 30, 10],
  [10, 30, 200],
] as const;

const painted = (
  colour: readonly number[],
) => `setsid setpriv --reuid=agent --regid=agent --init-groups --reset-env env DISPLAY=:0 LANG=C.UTF-8 \
  xfce4-terminal --maximize --hide-menubar --hide-scrollbar \
  -x sh -c 'printf "\\033[?25l\\033[48;2;${colour.join(";")}m\\033[2J"; exec sleep 600' >/tmp/terminal.log 2>&1 </dev/null &`;

if (LONG && !hasBrowser) console.log(`a recording in the hub: left out, because there is no ${CHROMIUM}`);
if (!LONG) console.log("films: left out, because it takes minutes: ROOMD_TEST_LONG=1 runs it");

describe.skipIf(!LONG)("long tests", () => {
  withGuests("film", { prepare: async (daemon: TestDaemon) => void ownTemplates(daemon) }, (guests) => {
    let made: RecordingRecord;
    const path = () => `${AT}/screen/recordings/${made.recording_id}`;
    const shown = async (): Promise<number[]> => {
      const used: Json = await guests.daemon.ok("POST", `${AT}/computer`, { action: "screenshot" });
      return colourAt(Buffer.from(used.screenshot_b64, "base64"), ...MIDDLE);
    };

    test(
      "a screen is recorded until stopped",
      async () => {
        const { daemon } = guests;
        await shippedTemplate(daemon, "desktop");
        await daemon.room("d");
        await daemon.sandbox("d", "clerk", guests.cid(), { template_id: "desktop", memory_mib: 1024 });
        const response = await daemon.api("POST", `${AT}/screen/recordings`, { max_seconds: 900 });
        expect([response.status, response.body.state]).toEqual([201, "recording"]);
        for (const colour of COLOURS) {
          await daemon.exec("d", "clerk", { command: painted(colour) });
          await until("the screen has the colour", async () => String(await shown()) === String(colour), SLOW_MS);
        }
        made = await daemon.ok("POST", `${AT}/screen/recordings/${response.body.recording_id}/stop`, {});
        expect(made).toMatchObject({ state: "ended", end_reason: "stopped", width: 1280, height: 800 });
        console.log(`recorded ${made.duration_ms} ms in ${made.size_bytes} bytes`);
        expect((await daemon.ok("GET", `/v1/locate/${made.recording_id}`)).path).toBe(
          `/rooms/d/agents/clerk/screen?recording=${made.recording_id}`,
        );
        const none = await daemon.api("GET", `${path()}/film`);
        expect([none.status, none.body.code]).toEqual([422, "template_not_found"]);
      },
      BUILD_MS,
    );

    test.skipIf(!hasBrowser)(
      "the recording is played in the hub",
      async () => {
        const colours = COLOURS.map((colour) => colour.join());
        const input = { room: "d", agent: "clerk", recording: made.recording_id, colours };
        const seen = await seenBy("recording-reader.mjs", guests.daemon, input, {});
        expect(seen.colours).toEqual([...colours, colours[0]]);
        expect([seen.complaints, seen.violations, seen.strangers, seen.overflows]).toEqual([[], [], [], []]);
      },
      SLOW_MS,
    );

    test(
      "the video file shows the screen's content",
      async () => {
        const { daemon } = guests;
        await shippedTemplate(daemon, "film");
        const startedAt = performance.now();
        const file = join(daemon.home, "clerk.mp4");
        const result = await daemon.cli(["recording", "film", "d", "clerk", "--output", file]);
        expect([result.status, result.stderr]).toEqual([0, ""]);
        console.log(`${result.stdout.trim()}, made in ${Math.round(performance.now() - startedAt)} ms`);
        expect(readFileSync(file).subarray(4, 8).toString()).toBe("ftyp");
        await until(
          "the machine for the film has ended",
          () => existsSync(join(daemon.dataDir, "films")) && readdirSync(join(daemon.dataDir, "films")).length === 0,
        );
        expect((await daemon.cli(["drive", "put", file, "d:/film.mp4"])).status).toBe(0);
        await daemon.sandbox("d", "reader", guests.cid(), { template_id: "film", memory_mib: 512 });
        const length = await daemon.sh(
          "d",
          "reader",
          "ffprobe -v error -show_entries format=duration -of csv=p=0 /mnt/drive/film.mp4",
        );
        expect(Math.abs(Number(length) * 1000 - made.duration_ms)).toBeLessThan(1000);
        // Some pixels of each picture; the last of all are of the last one.
        const pixels = `-vf crop=2:2:${MIDDLE.join(":")} -f rawvideo -pix_fmt rgb24 -`;
        const line = `ffmpeg -v error -i /mnt/drive/film.mp4 ${pixels} | tail -c 3 | od -An -tu1`;
        const last = await daemon.sh("d", "reader", line);
        const colour = last.trim().split(/\s+/).map(Number);
        for (const [at, value] of (COLOURS[1] as readonly number[]).entries()) {
          // Soon after a change it is not exact; of the other colour it is 190 away.
          expect(Math.abs((colour[at] ?? Number.NaN) - value)).toBeLessThan(48);
        }
      },
      BUILD_MS,
    );

    test(
      "a caller that disconnects during the conversion leaves nothing, and does not block the next",
      async () => {
        const { daemon } = guests;
        const leave = new AbortController();
        const headers = { authorization: `Bearer ${daemon.apiKey}` };
        const answer = await fetch(`${daemon.url}${path()}/film`, { headers, signal: leave.signal });
        expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "video/mp4"]);
        await answer.body?.getReader().read();
        const busy = await daemon.api("GET", `${path()}/film`);
        expect([busy.status, busy.body.code]).toEqual([503, "insufficient_capacity"]);
        leave.abort();
        await until(
          "the machine for the film has ended",
          () => readdirSync(join(daemon.dataDir, "films")).length === 0,
        );
        await daemon.ok("DELETE", path());
        expect((await daemon.ok("GET", `${AT}/screen/recordings`)).items).toEqual([]);
        await daemon.ok("DELETE", "/v1/rooms/d?drive=delete");
        expect(daemon.leftovers()).toEqual([]);
      },
      SLOW_MS,
    );
  });
});
