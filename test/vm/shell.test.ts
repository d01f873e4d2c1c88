/** `roomd shell` in a real terminal: a person's view and input, and the restored terminal on every way out. */
import { readdirSync, readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { RealTerminal } from "../harness/clients/real-terminal.ts";
import { BINARY } from "../harness/daemon.ts";
import { until, withGuests } from "../harness/guests.ts";

withGuests("roomd shell", {}, (guests) => {
  beforeAll(async () => {
    await guests.daemon.room("s");
    await guests.daemon.sandbox("s", "a", guests.cid());
  });

  const envOf = () => ({
    PATH: process.env.PATH ?? "",
    HOME: "/tmp",
    ROOMD_URL: guests.daemon.url,
    ROOMD_API_KEY: guests.daemon.apiKey,
  });
  /**
   * The command in a separate terminal; the shell around it prints the terminal's settings before and after, and stays until they were
   * seen.
   */
  const shell = (...words: string[]) => {
    const line = `stty -g; echo --; "$@"; echo "status=$?"; stty -g; echo ==; read -r`;
    return new RealTerminal(["/bin/bash", "-c", line, "bash", BINARY, "shell", "s", "a", ...words], envOf());
  };
  /** How it ended, once the terminal is proven to be as it was. */
  const statusOf = async (terminal: RealTerminal): Promise<number> => {
    await terminal.shows(/==\r\n$/);
    const { text } = terminal;
    terminal.type("\r");
    await terminal.ended;
    const before = /^([\s\S]*?)--\r\n/.exec(text)?.[1];
    const [, status, after] = /status=(\d+)\r\n([\s\S]*?)==\r\n$/.exec(text) ?? [];
    expect(after).toBe(before);
    return Number(status);
  };

  test("a login shell: size, resize, ctrl-c, exit status", async () => {
    await using terminal = shell();
    await terminal.shows("# ");
    terminal.type("stty size\r");
    await terminal.shows("24 80\r\n");
    terminal.resize(40, 120);
    await until("the terminal has the new size", async () => {
      const from = terminal.mark;
      terminal.type("stty size\r");
      await terminal.shows(/\d+ \d+\r\n/, from);
      return terminal.text.slice(from).includes("40 120\r\n");
    });
    terminal.type("sh -c 'echo sleep-be\"\"gins; exec sleep 1000'\r");
    await terminal.shows("sleep-begins");
    terminal.type("\x03");
    terminal.type("echo code-$?-\r");
    await terminal.shows("code-130-");
    terminal.type("exit 7\r");
    expect(await statusOf(terminal)).toBe(7);
  });

  test("vim draws, edits and saves; top shows processes and ends", async () => {
    await using terminal = shell();
    await terminal.shows("# ");
    terminal.type("vi /tmp/note\r");
    await terminal.shows("\x1b[?1049h");
    await terminal.shows("/tmp/note");
    terminal.type("ihello from vi\x1b");
    terminal.type(":wq\r");
    await terminal.shows("\x1b[?1049l");
    terminal.type("cat /tmp/note\r");
    await terminal.shows(/hello from vi\r\n/);
    const from = terminal.mark;
    terminal.type("top\r");
    await terminal.shows("PID", from);
    const shown = terminal.mark;
    terminal.type("q");
    // It discards input typed before it had ended.
    await terminal.shows("# ", shown);
    terminal.type("exit\r");
    expect(await statusOf(terminal)).toBe(0);
  });

  test("a command instead of the shell has its status and its signal", async () => {
    await using exits = shell("--", "sh", "-c", "tty; exit 3");
    expect(await statusOf(exits)).toBe(3);
    expect(exits.text).toContain("/dev/pts/");
    await using killed = shell("--", "sh", "-c", "kill -9 $$");
    expect(await statusOf(killed)).toBe(137);
    await using missing = shell("--", "no-such-program");
    expect(await statusOf(missing)).toBe(127);
  });

  test("no bytes are lost or duplicated by a kill of the daemon", async () => {
    // Without a process for each pause: on a busy host those take longer than the pauses.
    const line = "for i in $(seq 1 200); do echo line-$i.; read -r -t 0.02; done; echo all.; read -r";
    await using terminal = shell("--", "bash", "-c", line);
    await terminal.shows("line-20.");
    await guests.daemon.end("SIGKILL");
    // The same address, which the client has.
    guests.daemon.env.ROOMD_HTTP_LISTEN = new URL(guests.daemon.url).host;
    await guests.daemon.serve();
    await terminal.shows("all.", 0, 60_000);
    terminal.type("\r");
    expect(await statusOf(terminal)).toBe(0);
    const lines = [...terminal.text.matchAll(/line-(\d+)\./g)].map(([, number]) => Number(number));
    expect(lines).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
  });

  test("~. detaches from a running program, and --attach returns to it", async () => {
    await using first = shell();
    await first.shows("# ");
    first.type("vi /tmp/other\r");
    await first.shows("\x1b[?1049h");
    first.type("\x1b\r~.");
    expect(await statusOf(first)).toBe(0);
    expect(first.text).toContain("\x1b[?1049l");
    const id = /--attach (ter_\w+)/.exec(first.text)?.[1] ?? "";
    await using second = shell("--attach", id);
    await second.shows("\x1b[?1049h");
    second.type("\x1b:q!\r");
    await second.shows("\x1b[?1049l");
    second.type("exit 4\r");
    expect(await statusOf(second)).toBe(4);
  });

  test.each([
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("the terminal is restored after %s", async (signal, status) => {
    await using terminal = shell();
    await terminal.shows("# ");
    const { pid } = await until("the client runs", () => clientOf(guests.daemon.url));
    process.kill(pid, signal);
    expect(await statusOf(terminal)).toBe(status);
  });

  test("a takeover, or the sandbox's end, is explained in a sentence", async () => {
    await using first = shell();
    await first.shows("# ");
    const { items } = await guests.daemon.ok("GET", "/v1/rooms/s/sandboxes/a/terminals");
    const { terminal_id } = items.find((item: { attached: boolean }) => item.attached);
    await using second = shell("--attach", terminal_id);
    expect(await statusOf(first)).toBe(125);
    expect(first.text).toContain("taken over");
    await second.shows("# ");
    await guests.daemon.ok("DELETE", "/v1/rooms/s/sandboxes/a");
    expect(await statusOf(second)).toBe(125);
    expect(second.text).toContain("destroying");
  });

  test("ctrl-c at roomd exec reaches the command, and ends roomd logs -f", async () => {
    await guests.daemon.sandbox("s", "b", guests.cid());
    const words = [
      "exec",
      "s",
      "b",
      "--",
      "sh",
      "-c",
      "trap 'echo told; exit 9' INT; echo up; while :; do sleep 0.1; done",
    ];
    await using exec = new RealTerminal([BINARY, ...words], envOf());
    await exec.shows("up\r\n");
    exec.type("\x03");
    await exec.shows("told\r\n");
    expect(await exec.ended).toMatchObject({ exit_code: 9 });
    await using logs = new RealTerminal([BINARY, "logs", "s", "b", "-f"], envOf());
    for (const line of ["first-line", "second-line"]) {
      await guests.daemon.sh("s", "b", `echo ${line} >/dev/console`);
      await logs.shows(line);
    }
    logs.type("\x03");
    await logs.ended;
  });

  test("without a terminal it is refused with a reason", async () => {
    const { status, stderr } = await guests.daemon.cli(["shell", "s", "a"], "echo hi\n");
    expect(status).toBe(125);
    expect(stderr).toMatch(/^roomd: .*\bterminal\b/);
  });
});

/** The `roomd shell` that is a client of this daemon. */
function clientOf(url: string): { pid: number } | null {
  for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    try {
      const [program, verb] = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
      if (program !== BINARY || verb !== "shell") continue;
      if (readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(`ROOMD_URL=${url}`))
        return { pid: Number(name) };
    } catch {
      // It has exited in the meantime.
    }
  }
  return null;
}
