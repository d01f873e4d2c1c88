/** An operation that the SSH transport refuses has not been done, or is undone: also if only its record could not be written. */
import type { Client, ClientChannel } from "ssh2";
import { expect, test } from "vitest";
import { until } from "../../harness/guests.ts";
import { exec, openDoor } from "./ssh-door.ts";

function forward(client: Client): Promise<ClientChannel> {
  return new Promise((resolve, reject) =>
    client.forwardOut("127.0.0.1", 1, "127.0.0.1", 80, (error, channel) => (error ? reject(error) : resolve(channel))),
  );
}

test("a command without a stored record is hung up, and reported as refused", async () => {
  await using door = await openDoor();
  door.unrecorded.add("ssh_exec");
  const { client } = await door.login();
  const channel = await exec(client, "true");
  const output: Buffer[] = [];
  channel.stderr.on("data", (bytes: Buffer) => output.push(bytes));
  channel.resume();
  // Its exit status may have been sent already; the close repeats it.
  expect(await new Promise((resolve) => channel.once("close", resolve))).toBe(255);
  expect(Buffer.concat(output).toString()).toMatch(/^roomd: .+\n$/);
  expect(door.begun).toMatchObject([{ name: "ssh_exec", hungUp: 1, taken: 0 }]);
});

test("a port without a stored record is closed, and its channel refused", async () => {
  await using door = await openDoor();
  door.unrecorded.add("ssh_forward");
  const { client } = await door.login();
  // With the reason, which clients print.
  await expect(forward(client)).rejects.toThrow(/Channel open failure: \S+/);
  expect(door.begun).toMatchObject([{ name: "ssh_forward", hungUp: 1 }]);
});

test("a Unix socket of the guest can be forwarded", async () => {
  await using door = await openDoor();
  const { client } = await door.login();
  // ssh2's own client requests this only from servers that identify as OpenSSH.
  Object.assign(client, { _remoteVer: "OpenSSH_10.0" });
  const channel = await new Promise<ClientChannel>((done, fail) =>
    client.openssh_forwardOutStreamLocal("/run/x.sock", (error, opened) => (error ? fail(error) : done(opened))),
  );
  expect(door.begun).toMatchObject([{ name: "ssh_forward" }]);
  channel.destroy();
});

test("a reason that has no place in the reply is in the next session's errors, once", async () => {
  await using door = await openDoor();
  const { client } = await door.login();
  await new Promise<void>((done) => client.forwardIn("127.0.0.1", 0, (error) => done(expect(error).toBeDefined())));
  const saidBy = async (options: object) => {
    const channel = await new Promise<ClientChannel>((done, fail) =>
      client.exec("true", options, (error, opened) => (error ? fail(error) : done(opened))),
    );
    let output = "";
    channel.stderr.on("data", (bytes: Buffer) => {
      output += bytes;
    });
    return { channel, said: () => output };
  };
  const first = await saidBy({});
  await until("the reason is printed", () => first.said().includes("remote forwarding (-R) is refused"));
  door.output = async function* () {
    yield Buffer.from("out");
  };
  const second = await saidBy({});
  await new Promise((arrives) => second.channel.once("data", arrives));
  expect(second.said()).toBe("");
});

test("a login without a stored record fails, and leaves no session", async () => {
  await using door = await openDoor();
  door.unrecorded.add("ssh_login");
  await expect(door.login()).rejects.toThrow(/authentication/);
  expect(door.kept).toEqual([]);
});

test("a port that responds after its client has disconnected is closed", async () => {
  await using door = await openDoor();
  const dialled = Promise.withResolvers<void>();
  door.dialling = dialled.promise;
  const { client } = await door.login();
  forward(client).catch(() => {});
  await until("the guest is dialled", () => door.asked.includes("ssh_forward"));
  client.destroy();
  await door.kept[0]?.over;
  dialled.resolve();
  await until("the port is closed", () => door.begun[0]?.hungUp);
});
