/** Resources that end with an access: kinds that outlive the call that created them, and their counts in answers. */
import { Type } from "@sinclair/typebox";
import { record } from "./contract.ts";

export const MADE_NAMES = ["webhooks", "ports", "ssh_keys", "applications"] as const;
export type MadeName = (typeof MADE_NAMES)[number];

const counted = (what: string) => Type.Integer({ description: what });

export const endedMade = record("EndedMade", {
  webhooks: counted("Webhooks that are disabled, with the reason `maker_ended`."),
  ports: counted("Ports that are unexposed on the host that answers; those on other hosts end within a second."),
  ssh_keys: counted("Public SSH keys that are removed."),
  applications: counted("Applications that are signed out."),
});
