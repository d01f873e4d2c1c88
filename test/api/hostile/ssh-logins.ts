/** Logins by SSH with keys of no account. */
import { generateKeyPairSync } from "node:crypto";
import { Client } from "ssh2";
import type { Attack } from "../../harness/hostile/attack.ts";

const PER_SECOND = 20;

export default {
  title: "20 SSH logins a second without a valid key",
  attack: async ({ ssh_port }, count) => {
    const { privateKey } = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      publicKeyEncoding: { type: "pkcs1", format: "pem" },
      privateKeyEncoding: { type: "pkcs1", format: "pem" },
    });
    setInterval(() => {
      const client = new Client();
      client.on("error", ({ level }) => count(`refused ${level}`));
      client.on("ready", () => count("let in"));
      client.on("close", () => count("closed"));
      client.connect({ host: "127.0.0.1", port: ssh_port, username: "r+a", privateKey });
    }, 1_000 / PER_SECOND);
    await new Promise(() => {});
  },
} satisfies Attack;
