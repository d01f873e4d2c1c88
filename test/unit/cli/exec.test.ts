import { expect, test } from "vitest";
import { problem, run, standIn } from "./cli-fixture.ts";

const base64 = (bytes: string | Uint8Array) => Buffer.from(bytes).toString("base64");

function outcome(fields: Record<string, unknown> = {}): Response {
  const empty = { stdout: "", stderr: "", stdout_b64: "", stderr_b64: "", stdout_bytes: 0, stderr_bytes: 0 };
  const whole = { stdout_truncated: false, stderr_truncated: false };
  return Response.json({ exit_code: 0, signal: null, timed_out: false, duration_ms: 5, ...empty, ...whole, ...fields });
}

test("passes on the command as it is, and its streams byte for byte", async () => {
  const bytes = new Uint8Array([0, 255, 27, 10, 128]);
  await using service = await standIn(() => outcome({ stdout_b64: base64(bytes), stderr_b64: base64("oh\n") }));
  const words = ["exec", "a", "w", "--cwd", "/tmp", "--env", "K=V=W", "--user", "bob", "--timeout", "1500ms"];
  const ran = await run([...words, "--", "sh", "-c", "echo --json", "--help", "--", "x"], service);
  expect(ran.status).toBe(0);
  expect(ran.stdout).toBe(new TextDecoder().decode(bytes));
  expect(ran.stderr).toBe("oh\n");
  expect(service.seen[0]?.path).toBe("/v1/rooms/a/sandboxes/w/exec");
  expect(service.seen[0]?.body).toEqual({
    argv: ["sh", "-c", "echo --json", "--help", "--", "x"],
    cwd: "/tmp",
    env: { K: "V=W" },
    user: "bob",
    timeout_ms: 1500,
    max_output_bytes: 8 * 1024 * 1024,
  });
});

test.each([
  [{ exit_code: 0 }, 0],
  [{ exit_code: 7 }, 7],
  [{ exit_code: 127 }, 127],
  [{ exit_code: null, signal: "SIGKILL" }, 137],
  [{ exit_code: null, signal: "SIGTERM" }, 143],
  [{ exit_code: null, timed_out: true, signal: "SIGTERM" }, 124],
])("%j exits with %i", async (fields, status) => {
  await using service = await standIn(() => outcome(fields));
  expect((await run(["exec", "a", "w", "--", "true"], service)).status).toBe(status);
  expect((await run(["exec", "a", "w", "--json", "--", "true"], service)).status).toBe(status);
});

test("125 is roomd's own failure, whichever it is", async () => {
  await using service = await standIn(() => problem({ status: 404, code: "room_not_found", detail: "No room a." }));
  expect(await run(["exec", "a", "w", "--", "true"], service)).toEqual({
    status: 125,
    stdout: "",
    stderr: "roomd: No room a.\n",
  });
  expect((await run(["exec", "a", "w", "--", "true"])).status).toBe(125);
  expect((await run(["exec", "a"], service)).status).toBe(125);
  // The command's own --json is not ours.
  expect((await run(["exec", "a", "w", "--", "tool", "--json"], service)).stderr).toBe("roomd: No room a.\n");
});

test("pipes standard input through, up to its limit", async () => {
  await using service = await standIn(() => outcome());
  const stdin = new Uint8Array(300_000).map((_, index) => index % 251);
  await run(["exec", "a", "w", "--", "cat"], { ...service, stdin });
  expect(service.seen[0]?.body).toMatchObject({ stdin_b64: base64(stdin) });
  await run(["exec", "a", "w", "--no-stdin", "--", "cat"], { ...service, stdin });
  expect(service.seen[1]?.body).not.toHaveProperty("stdin_b64");
  const tooMuch = await run(["exec", "a", "w", "--", "cat"], {
    ...service,
    stdin: new Uint8Array(8 * 1024 * 1024 + 1),
  });
  expect(tooMuch).toMatchObject({ status: 125, stderr: expect.stringMatching(/over 8.0 MiB.*roomd drive put/) });
  expect(service.seen.length).toBe(2);
});

test("says when output was cut and when time ran out", async () => {
  await using service = await standIn(() =>
    outcome({ timed_out: true, exit_code: null, stdout_truncated: true, stdout_bytes: 9 * 1024 * 1024 }),
  );
  const { stderr } = await run(["exec", "a", "w", "--", "yes"], service);
  expect(stderr).toMatch(/stdout had 9.0 MiB, .*--output-to/);
  expect(stderr).toMatch(/ended after 5 ms, see --timeout/);
});

test("much output reaches a slow reader whole, and a reader that leaves is no error", async () => {
  const line = `${"x".repeat(99)}\n`;
  await using service = await standIn(() => outcome({ stdout_b64: base64(line.repeat(50_000)) }));
  const { stdout } = await run(["exec", "a", "w", "--", "yes"], service);
  expect(stdout.length).toBe(5_000_000);
  const { env } = service;
  const main = new URL("../../../daemon/main.ts", import.meta.url).pathname;
  const child = Bun.spawn(["sh", "-c", `"$0" "$1" exec a w -- yes | head -n 1`, process.execPath, main], {
    env: { PATH: process.env.PATH ?? "", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [first, complaint] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect(first).toBe(line);
  expect(complaint).toBe("");
});
