// What @hey-api/openapi-ts makes of the document: functions for every operation, with a client over fetch.
export default {
  input: process.env.TIDEMARK_DOCUMENT ?? 'http://127.0.0.1:8080/openapi.json',
  output: { path: 'generated/sdk', module: { extension: '.js' } },
  plugins: ['@hey-api/client-fetch'],
};
