/** OpenSSH's own programs against the gateway, on real guests. */
import { beforeAll, expect, test } from "vitest";
import { withGuests } from "../harness/guests.ts";
import { SshClient, sshPort } from "../harness/ssh-client.ts";

withGuests("ssh", {}, (guests) => {
  let client: SshClient;
  const ssh = (words: string[], input?: string | Buffer, more?: string[]) => client.ssh("it@ssh", words, input, more);

  beforeAll(async () => {
    const { daemon } = guests;
    client = new SshClient(sshPort(daemon));
    await daemon.room("ssh");
    await daemon.sandbox("ssh", "it", guests.cid(), { memory_mib: 512 });
    await daemon.ok("POST", "/v1/orgs/self/ssh-keys", { public_key: client.publicKey });
    return () => client[Symbol.dispose]();
  });

  test("a command's status is ssh's own, and its streams stay apart", async () => {
    const done = await ssh(["echo out; echo err >&2; exit 7"]);
    expect({ ...done, stdout: done.stdout.toString() }).toEqual({
      status: 7,
      signal: null,
      stdout: "out\n",
      stderr: "err\n",
    });
    expect((await ssh(["true"])).status).toBe(0);
  });
});
