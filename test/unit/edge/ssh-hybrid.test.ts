/** The key exchange with ML-KEM: by test vectors, with ssh2 on both sides, and with messages of a hostile client. */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ml_kem768 } from "@noble/post-quantum/ml-kem.js";
import { Client } from "ssh2";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { offerHybrid } from "../../../daemon/edge/ssh/hybrid-exchange.ts";
import { answerHybrid, checkMlkem, HYBRID_KEX, offerHybridKeys } from "../../../daemon/edge/ssh/mlkem.ts";
import { type Door, openDoor } from "./ssh-door.ts";

test("ML-KEM-768 gives the accumulated digest of C2SP's first hundred vectors", () => {
  const ROUNDS = 100;
  const EACH = 96 + 1088;
  const stream = createHash("shake128", { outputLength: ROUNDS * EACH }).digest();
  const out = createHash("shake128", { outputLength: 32 });
  for (let round = 0; round < ROUNDS; round++) {
    const bytes = stream.subarray(round * EACH, (round + 1) * EACH);
    const { publicKey, secretKey } = ml_kem768.keygen(bytes.subarray(0, 64));
    const { cipherText, sharedSecret } = ml_kem768.encapsulate(publicKey, bytes.subarray(64, 96));
    for (const part of [publicKey, cipherText, sharedSecret]) out.update(part);
    out.update(ml_kem768.decapsulate(bytes.subarray(96), secretKey));
  }
  expect(out.digest("hex")).toBe("1114b1b6699ed191734fa339376afa7e285c9e6acf6ff0177d346696ce564415");
  expect(() => checkMlkem()).not.toThrow();
});

test("both sides derive the same secret, which differs each time", () => {
  const secrets = [0, 1].map(() => {
    const { message, secretOf } = offerHybridKeys();
    const { reply, secret } = answerHybrid(message);
    expect([message.byteLength, reply.byteLength]).toEqual([1216, 1120]);
    expect(secretOf(reply).equals(secret)).toBe(true);
    return secret.toString("hex");
  });
  expect(new Set(secrets).size).toBe(2);
});

describe("a client's message is rejected", () => {
  const { message } = offerHybridKeys();
  test.each([
    ["that is short", message.subarray(0, 1215)],
    ["that is long", Buffer.concat([message, Buffer.of(0)])],
    ["that is empty", Buffer.alloc(0)],
    ["with an ML-KEM key out of range", Buffer.concat([Buffer.alloc(1152, 0xff), message.subarray(1152)])],
    ["with an X25519 key of small order", Buffer.concat([message.subarray(0, 1184), Buffer.alloc(32)])],
  ])("%s", (_, bytes) => {
    expect(() => answerHybrid(bytes)).toThrow();
  });
});

interface Offer {
  lists: { serverHostKey: { array: string[] } } & Record<"cs" | "sc", Record<string, { array: string[] }>>;
}

describe("at the gateway", () => {
  let door: Door;
  beforeAll(async () => {
    door = await openDoor();
  });
  afterAll(() => door[Symbol.asyncDispose]());

  /** Connects; returns the negotiated exchange, and how the connection ended, or null. */
  async function connected(prepare: (client: Client) => void, kex?: string[]) {
    const client = new Client();
    const agreed: string[] = [];
    client.on("handshake", (negotiated) => agreed.push(negotiated.kex));
    const ended = new Promise<string>((done, fail) => {
      client.on("ready", () => done("ready")).on("error", (error) => done(error.message));
      client.on("close", () => fail(new Error("closed without a word")));
    });
    const algorithms = kex ? { algorithms: { kex: kex as never } } : {};
    client.connect({ host: "127.0.0.1", port: door.server.port, username: "a@r", password: "org_1", ...algorithms });
    prepare(client);
    return { client, agreed, ended: await ended };
  }

  test("a client that supports it uses it, also when keys are exchanged again", async () => {
    const { client, agreed, ended } = await connected(offerHybrid);
    expect([ended, agreed]).toEqual(["ready", [HYBRID_KEX]]);
    const again = new Promise((done) => client.once("handshake", done));
    (client as unknown as { _protocol: { rekey(): void } })._protocol.rekey();
    await again;
    expect(agreed).toEqual([HYBRID_KEX, HYBRID_KEX]);
    client.end();
  });

  test("a client without it uses curve25519-sha256", async () => {
    const { client, agreed, ended } = await connected(() => {});
    expect([ended, agreed[0]]).toEqual(["ready", expect.stringMatching(/^curve25519-sha256/)]);
    client.end();
  });

  test("a client that prefers another supported exchange uses that one", async () => {
    const { client, agreed, ended } = await connected((made) => {
      const protocol = (made as unknown as { _protocol: { _offer: Offer } })._protocol;
      const { lists } = protocol._offer;
      const of = (direction: Offer["lists"]["cs"]) =>
        Object.fromEntries(Object.entries(direction).map(([name, { array }]) => [name, array]));
      const kex = ["curve25519-sha256@libssh.org", HYBRID_KEX, "curve25519-sha256"];
      const offer = { kex, serverHostKey: lists.serverHostKey.array, cs: of(lists.cs), sc: of(lists.sc) };
      protocol._offer = Reflect.construct(protocol._offer.constructor, [offer]);
    });
    expect([ended, agreed]).toEqual(["ready", ["curve25519-sha256@libssh.org"]]);
    client.end();
  });

  test("a malformed message ends only its connection", async () => {
    const { client, ended } = await connected((made) => {
      offerHybrid(made);
      const protocol = (made as unknown as { _protocol: Record<string, never> })._protocol;
      const own = Object.getOwnPropertyDescriptor(protocol, "_kex");
      Object.defineProperty(protocol, "_kex", {
        ...own,
        set(exchange: { getPublicKey(): Buffer }) {
          own?.set?.call(protocol, exchange);
          exchange.getPublicKey = () => Buffer.alloc(1216, 0xff);
        },
      });
    });
    expect(ended).not.toBe("ready");
    client.destroy();
    const next = await connected(offerHybrid);
    expect(next.ended).toBe("ready");
    next.client.end();
  });
});

/** OpenSSH of 10.0 or later: the host's, or the version that packaging/install-host --tests has unpacked in addition. */
const openssh = [process.env.ROOMD_TEST_SSH, "ssh", "/usr/local/lib/roomd/openssh"].find(
  (program) => program && spawnSync(program, ["-Q", "kex"], { encoding: "utf8" }).stdout?.includes(HYBRID_KEX),
);
if (!openssh) console.log(`skipped: no OpenSSH here has ${HYBRID_KEX}; packaging/install-host --tests gets one`);

describe.skipIf(!openssh)("OpenSSH 10", () => {
  const home = mkdtempSync(join(tmpdir(), "roomd-openssh-"));
  let door: Door;
  beforeAll(async () => {
    door = await openDoor();
    writeFileSync(join(home, "askpass"), "#!/bin/sh\necho org_1\n", { mode: 0o700 });
  });
  afterAll(async () => {
    await door[Symbol.asyncDispose]();
    rmSync(home, { recursive: true, force: true });
  });

  /** Returns the output up to this number of bytes: the gateway's command has no end of its own. */
  async function ssh(bytes: number, ...options: string[]): Promise<{ output: string; debug: string }> {
    const settings = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "PreferredAuthentications=password"];
    const argv = ["-F", "none", "-v", ...settings.flatMap((each) => ["-o", each]), ...options];
    const child = spawn(openssh ?? "", [...argv, "-p", String(door.server.port), "a@r@127.0.0.1", "anything"], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, SSH_ASKPASS: join(home, "askpass"), SSH_ASKPASS_REQUIRE: "force", DISPLAY: ":0" },
    });
    let [output, debug] = ["", ""];
    child.stderr.on("data", (piece) => {
      debug += piece;
    });
    child.stdout.on("data", (piece) => {
      output += piece;
      if (output.length >= bytes) child.kill();
    });
    await new Promise((done) => child.once("close", done));
    return { output, debug };
  }

  test("prefers it, verifies the host key over it, and runs a command without a warning", async () => {
    door.output = async function* () {
      yield Buffer.from("from the guest");
    };
    const { output, debug } = await ssh(14);
    expect(debug).toContain(`kex: algorithm: ${HYBRID_KEX}`);
    expect(debug).toContain("Authenticated to 127.0.0.1");
    expect(debug).not.toMatch(/post-quantum|store now, decrypt later/);
    expect(output).toBe("from the guest");
  });

  test("exchanges keys again with it in the middle of a stream", async () => {
    const PIECES = 48;
    door.output = async function* () {
      for (let piece = 0; piece < PIECES; piece++) yield Buffer.alloc(64 * 1024, 97);
    };
    const { output, debug } = await ssh(PIECES * 64 * 1024, "-o", "RekeyLimit=1M");
    expect(output).toBe("a".repeat(PIECES * 64 * 1024));
    expect(debug.match(new RegExp(`kex: algorithm: ${HYBRID_KEX}`, "g"))?.length).toBeGreaterThan(2);
  });
});
