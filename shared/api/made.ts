/** Resources that end with an access: kinds that outlive the call that created them, and their counts in answers. */
import { Type } from "@sinclair/typebox";
import { record } from "./contract.ts";

export const MADE_NAMES = ["webhooks", "ports", "ssh_keys", "applications"] as const;
export type MadeName = (typeof MADE_NAMES)[number];

const countField = (text: string) => Type.Integer({ description: text });

export const endedMade = record("EndedMade", {
  webhooks: countField("Webhooks that are disabled, with the reason `maker_ended`."),
  ports: countField("Ports that are unexposed on the host that answers; those on other hosts end within a second."),
  ssh_keys: countField("Public SSH keys that are removed."),
  applications: countField("Applications that are signed out."),
});
