/** Replies of the SSH transport to a client that has a public key, and to the holder of its private key. */
import { Client, type ParsedKey, utils } from "ssh2";
import { expect, test } from "vitest";
import { newPrivateKey } from "../../../daemon/edge/ssh/host-key.ts";
import { type Door, openDoor } from "./ssh-door.ts";

const NAMES = ["worker-1@r", "worker-2@r", "worker-1@elsewhere"];

function newKey(): ParsedKey & { text: string } {
  const text = newPrivateKey();
  return Object.assign(utils.parseKey(text) as ParsedKey, { text });
}

const encoded = (key: ParsedKey) => key.getPublicSSH().toString("base64");

/** Offers a key, and signs with it or with another; returns the server's replies. */
async function offer(door: Door, username: string, key: ParsedKey, signer: ParsedKey): Promise<string[]> {
  const client = new Client();
  const replies: string[] = [];
  const note = (line: string) => {
    if (/^Inbound: Received USERAUTH_(?:PK_OK|SUCCESS|FAILURE)/.test(line))
      replies.push(String(/USERAUTH_(\w+)/.exec(line)?.[1]));
  };
  // The public half is offered; the signer need not have the other half.
  const offered = Object.assign(Object.create(key), {
    sign: (...args: Parameters<ParsedKey["sign"]>) => signer.sign(...args),
  });
  let tries = 0;
  const over = Promise.withResolvers<void>();
  client.on("ready", () => over.resolve()).on("error", () => over.resolve());
  client.connect({
    host: "127.0.0.1",
    port: door.server.port,
    username,
    debug: note,
    authHandler: (_left, _partial, next) => {
      if (tries++ > 0) return next(false as never);
      next({ type: "publickey", username, key: offered as never });
    },
  });
  await over.promise;
  client.destroy();
  return replies;
}

test("a registered public key gets the same reply for any name; the name counts after the signature", async () => {
  await using door = await openDoor();
  const key = newKey();
  door.publicKeys.set(encoded(key), "a");
  const answers = Object.fromEntries(
    await Promise.all(NAMES.map(async (name) => [name, await offer(door, name, key, key)])),
  );
  expect(answers).toEqual({
    "worker-1@r": ["PK_OK", "SUCCESS"],
    "worker-2@r": ["PK_OK", "FAILURE"],
    "worker-1@elsewhere": ["PK_OK", "FAILURE"],
  });
  expect(door.asked).toEqual(["ssh_login"]);
});

test("a client that cannot sign gets the same reply for every name, and an unknown key is always refused", async () => {
  await using door = await openDoor();
  const [key, another] = [newKey(), newKey()];
  door.publicKeys.set(encoded(key), "a");
  for (const name of NAMES) {
    expect(await offer(door, name, key, another)).toEqual(["PK_OK", "FAILURE"]);
    expect(await offer(door, name, another, another)).toEqual(["FAILURE"]);
  }
  expect([door.asked, door.kept]).toEqual([[], []]);
});
