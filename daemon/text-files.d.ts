/** Files that are embedded in the binary as text. */
declare module "*.sql" {
  const text: string;
  export default text;
}
declare module "*.toml" {
  const text: string;
  export default text;
}
declare module "*.service" {
  const text: string;
  export default text;
}
declare module "*/packaging/install-host" {
  const text: string;
  export default text;
}
declare module "*/packaging/debian-mirror" {
  const text: string;
  export default text;
}
declare module "*/packaging/guest-image/build" {
  const text: string;
  export default text;
}
declare module "*/packaging/guest-image/runtime" {
  const text: string;
  export default text;
}
declare module "*/packaging/guest-image/unpacker-init" {
  const text: string;
  export default text;
}
declare module "*/packaging/guest-image/initramfs-init" {
  const text: string;
  export default text;
}
declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*/common-passwords.txt" {
  const text: string;
  export default text;
}
/** Scripts that run in a browser. */
declare module "*.browser.js" {
  const text: string;
  export default text;
}
/** The hub's files, as packaging/build packs them. */
declare module "*/hub.pack" {
  const text: string;
  export default text;
}
/** The clients' packages, as packaging/build packs them. */
declare module "*/clients.pack" {
  const text: string;
  export default text;
}

/** The path of an archive that is embedded as a file. */
declare module "*.tgz" {
  const path: string;
  export default path;
}

declare module "*.md" {
  const text: string;
  export default text;
}
