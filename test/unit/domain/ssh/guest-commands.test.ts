/** Lines of an SSH session that run unchanged, and the command for an rsync client if the root may have no rsync. */
import { expect, test } from "vitest";
import { commandOf } from "../../../../daemon/domain/ssh/guest-commands.ts";

const run = (line: string) => {
  const { stdout } = Bun.spawnSync(commandOf(line), { env: { PATH: "/usr/bin:/bin" } });
  return stdout.toString();
};

test("a line runs unchanged, in the user's shell", () => {
  expect(run("echo one 'two  three' $((1 + 1))")).toBe("one two  three 2\n");
  expect(commandOf("echo rsync --server .")).toHaveLength(4);
  expect(commandOf("rsync --serverless")).toHaveLength(4);
});

test("the root's own rsync comes first, and ours is called through its loader with the client's arguments", () => {
  const line = "rsync --server -logDtpre.iLsfxCIvu . '/root/a b'";
  const [, , script, first, ours] = commandOf(line);
  expect([first, ours]).toEqual([
    line,
    "/usr/lib/roomd/lib/ld.so --library-path /usr/lib/roomd/lib /usr/lib/roomd/bin/rsync --server -logDtpre.iLsfxCIvu . '/root/a b'",
  ]);
  expect(script).toMatch(/^command -v rsync .*"\$1"; exec .*"\$0"$/);
});
