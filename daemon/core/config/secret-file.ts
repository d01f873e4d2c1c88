/** Secrets of the configuration, each in a separate file, so that the configuration can be shown. */
import { readFileSync } from "node:fs";
import { describeError } from "../service-error.ts";
import { type Config, ConfigError, type ConfigKey } from "./config.ts";

type SecretKey = Extract<ConfigKey, `${string}_file`> &
  { [K in ConfigKey]: Config[K] extends string ? K : never }[ConfigKey];

/** Content of the file that a key names; null if the key is empty. Throws ConfigError, also if the file is empty. */
export function secretIn(config: Config, key: SecretKey): string | null {
  const file = config[key];
  if (file === "") return null;
  const refuse = (why: string) => new ConfigError(`${key} = ${JSON.stringify(file)}: ${why}`);
  let secret: string;
  try {
    secret = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw refuse(describeError(error));
  }
  if (secret === "") throw refuse("the file is empty");
  return secret;
}
