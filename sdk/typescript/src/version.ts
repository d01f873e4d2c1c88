/** Version of the SDK. Services of the same major version are supported. */
export const VERSION = "0.1.0";
