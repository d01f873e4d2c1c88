/** Which line would let a sandbox connect; the names in it come from the guest. */
import { describe, expect, test } from "vitest";
import { allowWords, type Destination, entryFor } from "../../../daemon/web/agent/places.ts";
import { stagesOf } from "../../../daemon/web/agent/words.ts";
import { commandText, shellLine, shellWord } from "../../../shared/shell.ts";

const refused = (some: Partial<Destination>) =>
  ({ host: null, ip: null, port: 443, allowed: false, reason: "not_listed", ...some }) as Destination;

describe("entryFor", () => {
  test.each([
    [{ host: "pypi.example.net" }, "pypi.example.net:443"],
    [{ host: "pypi.example.net", port: null }, "pypi.example.net"],
    [{ ip: "192.0.2.7", port: 80 }, "192.0.2.7:80"],
    [{ ip: "2001:db8::7", port: 80 }, "[2001:db8::7]:80"],
    [{ host: "pypi.example.net", reason: "blocked_address" }, null],
    [{ host: "pypi.example.net", allowed: true, reason: null }, null],
    [{ host: "$(reboot).example.net" }, null],
    [{ host: "--all" }, null],
    [{ host: "a.b; reboot" }, null],
    [{ host: "*" }, null],
    [{ host: "*.example.org" }, null],
    [{ host: "a\u202e.example.org" }, null],
    [{ host: `${"a".repeat(64)}.example.org` }, null],
  ] as const)("%j: %s", (some, entry) => {
    expect(entryFor(refused(some))).toBe(entry);
  });
});

test("the line has the whole list, quoted, and the revision that it is based on", () => {
  const given = { room: "build-42", agent: "worker", list: ["*.example.org", "example.org"], revision: 3 };
  expect(shellLine(["roomd", ...allowWords(given, "pypi.example.net:443")])).toBe(
    "roomd egress set build-42 worker '*.example.org' example.org pypi.example.net:443 --if-revision 3",
  );
});

test("shell arguments are parsed back unchanged", () => {
  for (const word of ["plain", "two words", "it's", '$HOME `x` "y" \\', "*", ""]) {
    const { stdout } = Bun.spawnSync(["/bin/sh", "-c", `printf %s ${shellWord(word)}`]);
    expect(stdout.toString()).toBe(word);
  }
  expect(shellLine(["a\nb"])).toBeNull();
});

test("a command is shown as typed", () => {
  expect(commandText(["/bin/sh", "-c", "make | tee log"])).toBe("make | tee log");
  expect(commandText(["git", "commit", "-m", "two words"])).toBe("git commit -m 'two words'");
});

test("stages of a start, the longest first, with parts named after their stage", () => {
  expect(stagesOf({ devices_ms: 28, agent_ms: 626, agent_hello_ms: 32, share_open_ms: 1 })).toEqual([
    { name: "agent", ms: 626 },
    { name: "agent: hello", ms: 32 },
    { name: "devices", ms: 28 },
    { name: "share open", ms: 1 },
  ]);
});
