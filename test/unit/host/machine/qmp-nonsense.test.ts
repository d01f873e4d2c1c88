/** Arbitrary output of a QEMU, possibly compromised by its guest, on its monitor: it ends that QEMU and nothing else. */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { connectMachine } from "../../../../daemon/host/machine/machine.ts";
import { QmpError } from "../../../../daemon/host/machine/qmp.ts";
import { MAX_LINE_BYTES, NonsenseError, QmpLines, readMessage } from "../../../../daemon/host/machine/qmp-message.ts";
import { endProcess, isAlive, startProcess } from "../../../../daemon/host/process.ts";
import { Chance } from "../../../harness/random.ts";

const DEEP = "[".repeat(300_000) + "]".repeat(300_000);

/** The output, its repetitions, and the resulting error. */
const NONSENSE: Record<string, { text: string; times?: number; why: RegExp }> = {
  "no JSON": { text: "x\n", why: /not JSON/ },
  "half of an object": { text: '{"return": {\n', why: /not JSON/ },
  "bytes that are no text": { text: "\u0000\u0001\ufffd\n", why: /not JSON/ },
  "no object": { text: "null\n", why: /not an object/ },
  "a list": { text: '[{"event": "STOP"}]\n', why: /not an object/ },
  "a number": { text: "1e999\n", why: /not an object/ },
  "JSON that is deep": { text: `${DEEP}\n`, why: /not JSON|not an object/ },
  "an event without a name": { text: '{"event": {}}\n', why: /no.*|event is malformed/ },
  "an event with invalid data": { text: '{"event": "STOP", "data": 7}\n', why: /event is malformed/ },
  "an event with null data": { text: '{"event": "SHUTDOWN", "data": null}\n', why: /event is malformed/ },
  "a reply to no call": { text: '{"return": {}, "id": 4096}\n', why: /unknown request/ },
  "an answer to a huge number": { text: '{"return": {}, "id": 1e308}\n', why: /names no command/ },
  "an answer without a number": { text: '{"return": {}}\n', why: /names no command/ },
  "an empty refusal": { text: '{"error": null, "id": 2}\n', why: /answer is malformed/ },
  "an object of nothing": { text: "{}\n", why: /names no command/ },
  "a line without an end": { text: "y".repeat(65_536), times: 64, why: /more than \d+ bytes|too many bytes/ },
  "a line in small pieces": {
    text: "y".repeat(32),
    times: MAX_LINE_BYTES / 32 + 1,
    why: /more than \d+ bytes|too many bytes/,
  },
  "events without an end": {
    text: '{"event": "RTC_CHANGE", "data": {}}\n',
    times: 100_000,
    why: /too many|too many bytes/,
  },
};

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roomd-nonsense-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function startMoody(says: object) {
  const program = join(home, "qemu");
  copyFileSync(resolve("test/fixtures/moody-qemu"), program);
  writeFileSync(`${program}.says`, JSON.stringify(says));
  const sockets = { qmp: join(home, "q"), qmp_spare: join(home, "s"), console: join(home, "c") };
  const ids = { qmp: sockets.qmp, "qmp-spare": sockets.qmp_spare, console: sockets.console };
  const argv = Object.entries(ids).flatMap(([id, path]) => ["-chardev", `socket,id=${id},path=${path},server=on`]);
  const process = startProcess("qemu", [program, ...argv], join(home, "log"));
  return { process, at: { sockets, console_log: join(home, "console") } };
}

test.each(Object.entries(NONSENSE))("%s ends the QEMU that sends it", async (_what, { why, ...says }) => {
  const { process, at } = startMoody({ after: "query-status", ...says });
  try {
    const machine = await connectMachine(process, at);
    const result = machine.find();
    await expect(result).rejects.toThrow(/QMP/);
    const end = await machine.qmp.closed;
    expect(end).toEqual({ by: "nonsense", error: expect.any(NonsenseError) });
    expect(end.by === "nonsense" && end.error.message).toMatch(why);
    expect(await machine.process.exited).toMatch(/SIGKILL/);
    expect(machine.ending()).toBe("nonsense");
    await expect(machine.qmp.execute("stop")).rejects.toThrow(QmpError);
  } finally {
    await endProcess(process);
  }
});

test.each([true, false])("a process without QEMU's greeting is rejected; own child: %s", async (own) => {
  const { process, at } = startMoody({ after: "greeting", text: "220 mail ready\n" });
  try {
    const known = own ? process : { name: "qemu", pid: process.pid, start_ticks: process.start_ticks };
    const started = performance.now();
    await expect(connectMachine(known, at)).rejects.toThrow(NonsenseError);
    // Detected by its content, and not by a deadline.
    expect(performance.now() - started).toBeLessThan(3_000);
  } finally {
    await endProcess(process);
  }
});

test("a QEMU adopted from an earlier daemon is ended as well", async () => {
  const { process, at } = startMoody({ after: "query-status", text: "x\n" });
  try {
    const machine = await connectMachine({ name: "qemu", pid: process.pid, start_ticks: process.start_ticks }, at);
    await expect(machine.find()).rejects.toThrow(/QMP/);
    await process.exited;
    expect([isAlive(process), machine.ending()]).toEqual([false, "nonsense"]);
  } finally {
    await endProcess(process);
  }
});

test("any bytes are messages or nonsense, for any chunks", () => {
  const chance = new Chance();
  const scraps = [
    '{"return":',
    '{"event":"STOP"',
    ',"data":{}',
    "}",
    "\n",
    '"id":',
    "1",
    "null",
    "[",
    "]",
    "\\u0000",
    "é",
  ];
  for (let round = 0; round < 3_000; round++) {
    const text = Array.from({ length: chance.whole(1, 30) }, () => chance.pick(scraps)).join("");
    const bytes = Buffer.from(text);
    const lines = new QmpLines();
    const read: string[] = [];
    for (let at = 0; at < bytes.length; ) {
      const next = at + chance.whole(1, 9);
      for (const line of lines.push(bytes.subarray(at, next))) {
        read.push(line);
        try {
          expect(["greeting", "event", "return", "refusal"]).toContain(readMessage(line).kind);
        } catch (error) {
          expect(error, `seed ${chance.seed}: ${line}`).toBeInstanceOf(NonsenseError);
        }
      }
      at = next;
    }
    const whole = text.split("\n").slice(0, -1);
    expect(read, `seed ${chance.seed}`).toEqual(whole.filter((line) => line !== ""));
  }
});

test("QEMU's messages are parsed", () => {
  expect(readMessage('{"QMP": {"version": {}}}')).toEqual({ kind: "greeting" });
  expect(readMessage('{"event": "STOP", "timestamp": {}}')).toEqual({ kind: "event", event: "STOP", data: {} });
  expect(readMessage('{"return": [1], "id": 3}')).toEqual({ kind: "return", id: 3, value: [1] });
  const refused = readMessage('{"id": 3, "error": {"class": "GenericError", "desc": "no such device"}}');
  expect(refused).toEqual({ kind: "refusal", id: 3, message: "no such device" });
});
